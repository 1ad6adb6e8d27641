CREATE TABLE templates (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    name       TEXT NOT NULL,
    language   TEXT NOT NULL,
    status     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    due_at     INTEGER,
    content    TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name, language)
) STRICT;

CREATE INDEX templates_due_idx ON templates (due_at) WHERE due_at IS NOT NULL;

-- `due_at`: when a node must look at it; `fence` grows whenever one takes it. `body` is what no query looks at.
CREATE TABLE broadcasts (
    tenant_id    INTEGER NOT NULL,
    id           BLOB NOT NULL,
    status       INTEGER NOT NULL,
    channel      INTEGER NOT NULL,
    message_type INTEGER NOT NULL,
    sender_id    BLOB NOT NULL,
    version      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    due_at       INTEGER,
    total        INTEGER NOT NULL,
    html         TEXT,
    body         TEXT NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX broadcasts_status_idx ON broadcasts (tenant_id, status, id);
CREATE INDEX broadcasts_due_idx ON broadcasts (due_at) WHERE due_at IS NOT NULL;

-- Written at import, at hand-over, and when what the message says of the recipient becomes another.
CREATE TABLE broadcast_contacts (
    tenant_id    INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    id           BLOB NOT NULL,
    kind         INTEGER NOT NULL,
    recipient    TEXT NOT NULL,
    status       INTEGER NOT NULL,
    message_id   BLOB,
    variables    TEXT NOT NULL,
    failure      TEXT,
    processed_at INTEGER,
    PRIMARY KEY (tenant_id, broadcast_id, id),
    UNIQUE (tenant_id, broadcast_id, kind, recipient)
) STRICT;

CREATE INDEX broadcast_contacts_status_idx ON broadcast_contacts (tenant_id, broadcast_id, status, id);

-- Where recipients stand. Several rows per broadcast, so that sessions that write at once do not wait for each other; the sum counts.
CREATE TABLE broadcast_counts (
    tenant_id    INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    shard        INTEGER NOT NULL,
    queued       INTEGER NOT NULL,
    sending      INTEGER NOT NULL,
    sent         INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    awaited      INTEGER NOT NULL,
    taken        INTEGER NOT NULL,
    cost         INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, shard)
) STRICT;
