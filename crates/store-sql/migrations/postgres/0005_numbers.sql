-- The operator's numbers, per world. `id` is set while the world holds the number: then `status`, `renews_at` and `updated_at` are
-- its holder's, and `sender_id` is the sender that it is assigned to.
CREATE TABLE phone_numbers (
    tenant_id     BIGINT NOT NULL,
    phone_number  TEXT COLLATE "C" NOT NULL,
    country       TEXT COLLATE "C" NOT NULL,
    capabilities  SMALLINT NOT NULL,
    monthly_price BIGINT NOT NULL,
    upfront_cost  BIGINT NOT NULL,
    monthly_cost  BIGINT NOT NULL,
    is_free       SMALLINT NOT NULL,
    id            UUID,
    status        SMALLINT NOT NULL,
    name          TEXT COLLATE "C",
    sender_id     UUID,
    renews_at     BIGINT,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, phone_number)
);

CREATE UNIQUE INDEX phone_numbers_id_idx ON phone_numbers (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX phone_numbers_available_idx ON phone_numbers (tenant_id, country, phone_number) WHERE id IS NULL;
CREATE INDEX phone_numbers_sender_idx ON phone_numbers (tenant_id, sender_id) WHERE sender_id IS NOT NULL;
CREATE INDEX phone_numbers_renewal_idx ON phone_numbers (renews_at) WHERE renews_at IS NOT NULL;

-- `due_at` is `expires_at` while the invitation is open.
CREATE TABLE invitations (
    tenant_id    BIGINT NOT NULL,
    id           UUID NOT NULL,
    version      BIGINT NOT NULL,
    status       SMALLINT NOT NULL,
    token_hash   BYTEA NOT NULL,
    sealed       BYTEA NOT NULL,
    client_name  TEXT COLLATE "C",
    client_email TEXT COLLATE "C",
    client_phone TEXT COLLATE "C",
    number_id    UUID,
    countries    TEXT COLLATE "C" NOT NULL,
    sender_id    UUID,
    expires_at   BIGINT NOT NULL,
    due_at       BIGINT,
    viewed_at    BIGINT,
    started_at   BIGINT,
    completed_at BIGINT,
    updated_at   BIGINT NOT NULL,
    walk         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Not unique, so that no key begins without the tenant: tokens are 256 random bits.
CREATE INDEX invitations_token_idx ON invitations (token_hash);
CREATE INDEX invitations_number_idx ON invitations (tenant_id, number_id) WHERE number_id IS NOT NULL;
CREATE INDEX invitations_due_idx ON invitations (due_at) WHERE due_at IS NOT NULL;
