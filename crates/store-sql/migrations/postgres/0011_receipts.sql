-- Under which ids a provider took messages, and parts of them, when that is all that its receipts name.
CREATE TABLE provider_refs (
    tenant_id     BIGINT NOT NULL REFERENCES worlds (tenant_id),
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    message_id    UUID NOT NULL,
    attempt       SMALLINT NOT NULL,
    part          SMALLINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, reference)
);

-- Receipts as they came, of messages that are known.
CREATE TABLE receipts (
    tenant_id     BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id            UUID NOT NULL,
    message_id    UUID NOT NULL,
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    raw           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, message_id, id)
);

-- Receipts of which the message is not known yet, with what they say as JSON. Without `due_at` nobody looks for it any more.
CREATE TABLE stray_receipts (
    tenant_id     BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id            UUID NOT NULL,
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL,
    happened_at   BIGINT NOT NULL,
    tries         SMALLINT NOT NULL,
    due_at        BIGINT,
    raw           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX stray_receipts_due_idx ON stray_receipts (due_at) WHERE due_at IS NOT NULL;

-- Providers name a connection alone when they call.
CREATE INDEX connections_id_idx ON connections (id);

-- Whether the operator set a connection up. Of those that are there nobody knows: they lead to public addresses until they are set anew.
ALTER TABLE connections ADD COLUMN trusted SMALLINT NOT NULL DEFAULT 0;
