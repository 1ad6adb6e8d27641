-- The operator's numbers, per world. `id` is set while the world holds the number: then `status`, `renews_at` and `updated_at` are
-- its holder's, and `sender_id` is the sender that it is assigned to.
CREATE TABLE phone_numbers (
    tenant_id     INTEGER NOT NULL,
    phone_number  TEXT NOT NULL,
    country       TEXT NOT NULL,
    capabilities  INTEGER NOT NULL,
    monthly_price INTEGER NOT NULL,
    upfront_cost  INTEGER NOT NULL,
    monthly_cost  INTEGER NOT NULL,
    is_free       INTEGER NOT NULL,
    id            BLOB,
    status        INTEGER NOT NULL,
    name          TEXT,
    sender_id     BLOB,
    renews_at     INTEGER,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, phone_number)
) STRICT;

CREATE UNIQUE INDEX phone_numbers_id_idx ON phone_numbers (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX phone_numbers_available_idx ON phone_numbers (tenant_id, country, phone_number) WHERE id IS NULL;
CREATE INDEX phone_numbers_sender_idx ON phone_numbers (tenant_id, sender_id) WHERE sender_id IS NOT NULL;
CREATE INDEX phone_numbers_renewal_idx ON phone_numbers (renews_at) WHERE renews_at IS NOT NULL;

-- `due_at` is `expires_at` while the invitation is open.
CREATE TABLE invitations (
    tenant_id    INTEGER NOT NULL,
    id           BLOB NOT NULL,
    version      INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    token_hash   BLOB NOT NULL,
    sealed       BLOB NOT NULL,
    client_name  TEXT,
    client_email TEXT,
    client_phone TEXT,
    number_id    BLOB,
    countries    TEXT NOT NULL,
    sender_id    BLOB,
    expires_at   INTEGER NOT NULL,
    due_at       INTEGER,
    viewed_at    INTEGER,
    started_at   INTEGER,
    completed_at INTEGER,
    updated_at   INTEGER NOT NULL,
    walk         TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- Not unique, so that no key begins without the tenant: tokens are 256 random bits.
CREATE INDEX invitations_token_idx ON invitations (token_hash);
CREATE INDEX invitations_number_idx ON invitations (tenant_id, number_id) WHERE number_id IS NOT NULL;
CREATE INDEX invitations_due_idx ON invitations (due_at) WHERE due_at IS NOT NULL;
