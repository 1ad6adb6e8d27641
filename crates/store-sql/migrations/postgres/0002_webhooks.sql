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
