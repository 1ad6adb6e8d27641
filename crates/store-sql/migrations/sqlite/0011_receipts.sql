-- Under which ids a provider took messages, and parts of them, when that is all that its receipts name.
CREATE TABLE provider_refs (
    tenant_id     INTEGER NOT NULL REFERENCES worlds (tenant_id),
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    message_id    BLOB NOT NULL,
    attempt       INTEGER NOT NULL,
    part          INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, reference)
) STRICT;

-- Receipts as they came, of messages that are known.
CREATE TABLE receipts (
    tenant_id     INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id            BLOB NOT NULL,
    message_id    BLOB NOT NULL,
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    raw           TEXT NOT NULL,
    PRIMARY KEY (tenant_id, message_id, id)
) STRICT;

-- Receipts of which the message is not known yet, with what they say as JSON. Without `due_at` nobody looks for it any more.
CREATE TABLE stray_receipts (
    tenant_id     INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id            BLOB NOT NULL,
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    kind          TEXT NOT NULL,
    happened_at   INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    due_at        INTEGER,
    raw           TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX stray_receipts_due_idx ON stray_receipts (due_at) WHERE due_at IS NOT NULL;

-- Providers name a connection alone when they call.
CREATE INDEX connections_id_idx ON connections (id);

-- Whether the operator set a connection up. Of those that are there nobody knows: they lead to public addresses until they are set anew.
ALTER TABLE connections ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0;
