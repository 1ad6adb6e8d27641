-- Messages from outside of which some parts have come, with these as JSON.
CREATE TABLE reassemblies (
    tenant_id     INTEGER NOT NULL REFERENCES worlds (tenant_id),
    connection_id BLOB NOT NULL,
    part_key      TEXT NOT NULL,
    reference     TEXT NOT NULL,
    sender        TEXT NOT NULL,
    due_at        INTEGER NOT NULL,
    parts         TEXT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, part_key)
) STRICT;

CREATE INDEX reassemblies_due_idx ON reassemblies (due_at);
