-- Where events are posted to. `sender_id` of zeros: the world's own.
CREATE TABLE webhooks (
    tenant_id       BIGINT NOT NULL REFERENCES worlds (tenant_id),
    sender_id       UUID NOT NULL,
    url             TEXT COLLATE "C" NOT NULL,
    events          TEXT COLLATE "C" NOT NULL,
    active          SMALLINT NOT NULL,
    sealed          BYTEA NOT NULL,
    previous_until  BIGINT,
    failing_since   BIGINT,
    disabled_reason TEXT COLLATE "C",
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, sender_id)
);

-- How far the event log of a world was read for its webhooks, and which node reads it.
CREATE TABLE webhook_cursors (
    tenant_id BIGINT NOT NULL REFERENCES worlds (tenant_id),
    position  BIGINT NOT NULL,
    entry     BIGINT NOT NULL,
    owner     BIGINT,
    fence     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id)
);

-- One event on its way to one webhook. Written when it is done, or when it must be tried again later.
CREATE TABLE deliveries (
    tenant_id   BIGINT NOT NULL,
    id          UUID NOT NULL,
    sender_id   UUID NOT NULL,
    event_id    UUID NOT NULL,
    event_type  TEXT COLLATE "C" NOT NULL,
    kind        SMALLINT NOT NULL,
    resource_id UUID NOT NULL,
    sequence    BIGINT NOT NULL,
    url         TEXT COLLATE "C" NOT NULL,
    status      SMALLINT NOT NULL,
    tries       SMALLINT NOT NULL,
    due_at      BIGINT,
    attempts    TEXT COLLATE "C" NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX deliveries_due_idx ON deliveries (tenant_id, sender_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_resource_idx ON deliveries (tenant_id, resource_id, id);
CREATE INDEX deliveries_unfinished_idx ON deliveries (tenant_id, id) WHERE status <> 2;
