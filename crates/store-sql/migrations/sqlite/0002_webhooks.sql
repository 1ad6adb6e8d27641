-- Where events are posted to. `sender_id` of zeros: the world's own.
CREATE TABLE webhooks (
    tenant_id       INTEGER NOT NULL REFERENCES worlds (tenant_id),
    sender_id       BLOB NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    active          INTEGER NOT NULL,
    sealed          BLOB NOT NULL,
    previous_until  INTEGER,
    failing_since   INTEGER,
    disabled_reason TEXT,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, sender_id)
) STRICT;

-- How far the event log of a world was read for its webhooks, and which node reads it.
CREATE TABLE webhook_cursors (
    tenant_id INTEGER NOT NULL REFERENCES worlds (tenant_id),
    position  INTEGER NOT NULL,
    entry     INTEGER NOT NULL,
    owner     INTEGER,
    fence     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id)
) STRICT;

-- One event on its way to one webhook. Written when it is done, or when it must be tried again later.
CREATE TABLE deliveries (
    tenant_id   INTEGER NOT NULL,
    id          BLOB NOT NULL,
    sender_id   BLOB NOT NULL,
    event_id    BLOB NOT NULL,
    event_type  TEXT NOT NULL,
    kind        INTEGER NOT NULL,
    resource_id BLOB NOT NULL,
    sequence    INTEGER NOT NULL,
    url         TEXT NOT NULL,
    status      INTEGER NOT NULL,
    tries       INTEGER NOT NULL,
    due_at      INTEGER,
    attempts    TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX deliveries_due_idx ON deliveries (tenant_id, sender_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_resource_idx ON deliveries (tenant_id, resource_id, id);
CREATE INDEX deliveries_unfinished_idx ON deliveries (tenant_id, id) WHERE status <> 2;
