CREATE TABLE templates (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    language   TEXT COLLATE "C" NOT NULL,
    status     SMALLINT NOT NULL,
    version    BIGINT NOT NULL,
    due_at     BIGINT,
    content    TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name, language)
);

CREATE INDEX templates_due_idx ON templates (due_at) WHERE due_at IS NOT NULL;

-- `due_at`: when a node must look at it; `fence` grows whenever one takes it. `body` is what no query looks at.
CREATE TABLE broadcasts (
    tenant_id    BIGINT NOT NULL,
    id           UUID NOT NULL,
    status       SMALLINT NOT NULL,
    channel      SMALLINT NOT NULL,
    message_type SMALLINT NOT NULL,
    sender_id    UUID NOT NULL,
    version      BIGINT NOT NULL,
    fence        BIGINT NOT NULL,
    due_at       BIGINT,
    total        BIGINT NOT NULL,
    html         TEXT COLLATE "C",
    body         TEXT COLLATE "C" NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX broadcasts_status_idx ON broadcasts (tenant_id, status, id);
CREATE INDEX broadcasts_due_idx ON broadcasts (due_at) WHERE due_at IS NOT NULL;

-- Written at import, at hand-over, and when what the message says of the recipient becomes another.
CREATE TABLE broadcast_contacts (
    tenant_id    BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    id           UUID NOT NULL,
    kind         SMALLINT NOT NULL,
    recipient    TEXT COLLATE "C" NOT NULL,
    status       SMALLINT NOT NULL,
    message_id   UUID,
    variables    TEXT COLLATE "C" NOT NULL,
    failure      TEXT COLLATE "C",
    processed_at BIGINT,
    PRIMARY KEY (tenant_id, broadcast_id, id),
    UNIQUE (tenant_id, broadcast_id, kind, recipient)
);

CREATE INDEX broadcast_contacts_status_idx ON broadcast_contacts (tenant_id, broadcast_id, status, id);

-- Where recipients stand. Several rows per broadcast, so that sessions that write at once do not wait for each other; the sum counts.
CREATE TABLE broadcast_counts (
    tenant_id    BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    shard        SMALLINT NOT NULL,
    queued       BIGINT NOT NULL,
    sending      BIGINT NOT NULL,
    sent         BIGINT NOT NULL,
    delivered    BIGINT NOT NULL,
    failed       BIGINT NOT NULL,
    skipped      BIGINT NOT NULL,
    awaited      BIGINT NOT NULL,
    taken        BIGINT NOT NULL,
    cost         BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, shard)
);
