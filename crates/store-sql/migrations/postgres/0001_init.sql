-- The first schema. Additive changes only from here on: a node of the version before must be able to run beside this one.
-- Times are Unix milliseconds. Numbers that stand for words are the `number()` of the domain's enumerations.
-- `tenant_id` is the world, and begins every key of tenant data.

CREATE TABLE projects (
    id          UUID NOT NULL PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL,
    team_id     UUID NOT NULL,
    team_name   TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL
);

-- Directory: which world a project's environment is, and the epoch of its configuration.
CREATE TABLE worlds (
    tenant_id   BIGINT NOT NULL PRIMARY KEY,
    project_id  UUID NOT NULL REFERENCES projects (id),
    environment TEXT COLLATE "C" NOT NULL CHECK (environment IN ('live', 'test')),
    epoch       BIGINT NOT NULL,
    UNIQUE (project_id, environment)
);

-- Directory: which world a key opens.
CREATE TABLE api_keys (
    tenant_id   BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id          UUID NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    hash        BYTEA NOT NULL UNIQUE,
    permissions TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE senders (
    tenant_id    BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id           UUID NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    phone_number TEXT COLLATE "C" NOT NULL,
    is_default   SMALLINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE connections (
    tenant_id  BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id         UUID NOT NULL,
    sender_id  UUID NOT NULL,
    channel    SMALLINT NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    settings   TEXT COLLATE "C" NOT NULL,
    sealed     BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sender_id, channel)
);

CREATE TABLE contacts (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    country    TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- One identifier of one kind. Messages point here; merging contacts moves addresses and nothing else.
CREATE TABLE addresses (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    kind       SMALLINT NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    contact_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, kind, identifier)
);

CREATE INDEX addresses_contact_idx ON addresses (tenant_id, contact_id);

CREATE TABLE channel_metrics (
    tenant_id       BIGINT NOT NULL,
    address_id      UUID NOT NULL,
    channel         SMALLINT NOT NULL,
    successes       BIGINT NOT NULL,
    failures        BIGINT NOT NULL,
    delivery_ms     BIGINT NOT NULL,
    timed           BIGINT NOT NULL,
    last_success_at BIGINT,
    last_inbound_at BIGINT,
    PRIMARY KEY (tenant_id, address_id, channel)
);

-- `sender_id` of zeros: no sender may.
CREATE TABLE suppressions (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    kind       SMALLINT NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    sender_id  UUID NOT NULL,
    reason     SMALLINT NOT NULL,
    source     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, kind, identifier, sender_id, reason)
);

CREATE TABLE idempotency_keys (
    tenant_id   BIGINT NOT NULL,
    operation   SMALLINT NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    resource_id UUID NOT NULL,
    check_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, operation, key)
);

CREATE INDEX idempotency_keys_check_idx ON idempotency_keys (check_at);

-- What a caller asked for, or a person wrote. Written once; only an erasure changes it.
CREATE TABLE messages (
    tenant_id       BIGINT NOT NULL,
    id              UUID NOT NULL,
    direction       SMALLINT NOT NULL,
    message_type    SMALLINT NOT NULL,
    sender_id       UUID NOT NULL,
    address_id      UUID NOT NULL,
    recipient       TEXT COLLATE "C" NOT NULL,
    sent_from       TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C",
    spooled         INTEGER NOT NULL,
    request         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX messages_address_idx ON messages (tenant_id, address_id, id);

-- The part of a message that changes. It has no index but its key, so that changing it moves no index entries. `wait` says what an
-- unfinished message waits for: 0 nothing (it is final), 1 an attempt, 2 its owner, 3 a receipt, 4 a person. `due_at` is set for 1, 3 and 4,
-- `owner` for 2. `revision` is raised by each write. `agenda` is the agenda row that guards the message, `history` refers to its entries in
-- the log.
CREATE TABLE states (
    tenant_id     BIGINT NOT NULL,
    id            UUID NOT NULL,
    status        SMALLINT NOT NULL,
    wait          SMALLINT NOT NULL,
    held          SMALLINT NOT NULL,
    due_at        BIGINT,
    owner         BIGINT,
    fence         BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    revision      BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    channel       SMALLINT NOT NULL,
    connection_id UUID NOT NULL,
    agenda        BIGINT,
    provider      TEXT COLLATE "C" NOT NULL,
    detail        TEXT COLLATE "C" NOT NULL,
    history       BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 50);

-- Messages that failed (kind 1) and messages that are held (kind 2): few, and looked for.
CREATE TABLE flagged (
    tenant_id BIGINT NOT NULL,
    kind      SMALLINT NOT NULL,
    id        UUID NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);

-- Which messages to look at again: a row per batch of them. Either `owner` makes an attempt of each, or the first of them is due at
-- `due_at`. `ids` holds 16 bytes a message. A row is a hint; `states` decides.
CREATE TABLE agenda (
    tenant_id     BIGINT NOT NULL,
    id            BIGINT NOT NULL,
    shard         SMALLINT NOT NULL,
    owner         BIGINT,
    due_at        BIGINT,
    connection_id UUID,
    expires_at    BIGINT NOT NULL,
    ids           BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX agenda_due_idx ON agenda (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_owner_idx ON agenda (owner) WHERE owner IS NOT NULL;

-- What happened: a row per tenant and transaction. `position` counts without a gap, in the order of commits. `entries` is a JSON array of
-- [kind, resource, sequence, time, changes].
CREATE TABLE log (
    tenant_id   BIGINT NOT NULL,
    position    BIGINT NOT NULL,
    batch       BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    entries     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, position),
    UNIQUE (tenant_id, batch)
);

-- The newest position in the log of a tenant.
CREATE TABLE log_heads (
    tenant_id BIGINT NOT NULL PRIMARY KEY,
    position  BIGINT NOT NULL
);

-- Where the log tells of a resource other than a message.
CREATE TABLE resource_log (
    tenant_id   BIGINT NOT NULL,
    resource_id UUID NOT NULL,
    sequence    BIGINT NOT NULL,
    batch       BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, resource_id, sequence)
);

-- Parts of requests too large for a row of the hot path, written and synced before the message is accepted.
CREATE TABLE spool_chunks (
    tenant_id  BIGINT NOT NULL,
    message_id UUID NOT NULL,
    chunk      INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    data       BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, message_id, chunk)
);

CREATE INDEX spool_chunks_created_idx ON spool_chunks (created_at);

-- Which provider messages were received already.
CREATE TABLE inbound_keys (
    tenant_id     BIGINT NOT NULL,
    connection_id UUID NOT NULL,
    provider_id   TEXT COLLATE "C" NOT NULL,
    message_id    UUID NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, provider_id)
);

-- Local to the coordinator: the processes that are or were alive.
CREATE TABLE nodes (
    id      BIGINT NOT NULL PRIMARY KEY,
    beat    BIGINT NOT NULL,
    dead    SMALLINT NOT NULL,
    beat_at BIGINT NOT NULL
);
