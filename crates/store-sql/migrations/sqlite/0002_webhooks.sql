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
