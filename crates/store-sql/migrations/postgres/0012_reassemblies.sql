-- Messages from outside of which some parts have come, with these as JSON.
CREATE TABLE reassemblies (
    tenant_id     BIGINT NOT NULL REFERENCES worlds (tenant_id),
    connection_id UUID NOT NULL,
    part_key      TEXT COLLATE "C" NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    sender        TEXT COLLATE "C" NOT NULL,
    due_at        BIGINT NOT NULL,
    parts         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, part_key)
);

CREATE INDEX reassemblies_due_idx ON reassemblies (due_at);
