-- The first schema. Additive changes only from here on: a node of the version before must be able to run beside this one.
-- Times are Unix milliseconds. Numbers that stand for words are the `number()` of the domain's enumerations.
-- `tenant_id` is the world, and begins every key of tenant data.

CREATE TABLE projects (
    id          BLOB NOT NULL PRIMARY KEY,
    name        TEXT NOT NULL,
    team_id     BLOB NOT NULL,
    team_name   TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- Directory: which world a project's environment is, and the epoch of its configuration.
CREATE TABLE worlds (
    tenant_id   INTEGER NOT NULL PRIMARY KEY,
    project_id  BLOB NOT NULL REFERENCES projects (id),
    environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
    epoch       INTEGER NOT NULL,
    UNIQUE (project_id, environment)
) STRICT;

-- Directory: which world a key opens.
CREATE TABLE api_keys (
    tenant_id   INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id          BLOB NOT NULL,
    name        TEXT NOT NULL,
    hash        BLOB NOT NULL UNIQUE,
    permissions TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE senders (
    tenant_id    INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id           BLOB NOT NULL,
    name         TEXT NOT NULL,
    phone_number TEXT NOT NULL,
    is_default   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE connections (
    tenant_id  INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id         BLOB NOT NULL,
    sender_id  BLOB NOT NULL,
    channel    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    settings   TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sender_id, channel)
) STRICT;

CREATE TABLE contacts (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    country    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- One identifier of one kind. Messages point here; merging contacts moves addresses and nothing else.
CREATE TABLE addresses (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    contact_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, kind, identifier)
) STRICT;

CREATE INDEX addresses_contact_idx ON addresses (tenant_id, contact_id);

CREATE TABLE channel_metrics (
    tenant_id       INTEGER NOT NULL,
    address_id      BLOB NOT NULL,
    channel         INTEGER NOT NULL,
    successes       INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    delivery_ms     INTEGER NOT NULL,
    timed           INTEGER NOT NULL,
    last_success_at INTEGER,
    last_inbound_at INTEGER,
    PRIMARY KEY (tenant_id, address_id, channel)
) STRICT, WITHOUT ROWID;

-- `sender_id` of zeros: no sender may.
CREATE TABLE suppressions (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    sender_id  BLOB NOT NULL,
    reason     INTEGER NOT NULL,
    source     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, kind, identifier, sender_id, reason)
) STRICT;

CREATE TABLE idempotency_keys (
    tenant_id   INTEGER NOT NULL,
    operation   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    resource_id BLOB NOT NULL,
    check_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, operation, key)
) STRICT;

CREATE INDEX idempotency_keys_check_idx ON idempotency_keys (check_at);

-- What a caller asked for, or a person wrote. Written once; only an erasure changes it.
CREATE TABLE messages (
    tenant_id       INTEGER NOT NULL,
    id              BLOB NOT NULL,
    direction       INTEGER NOT NULL,
    message_type    INTEGER NOT NULL,
    sender_id       BLOB NOT NULL,
    address_id      BLOB NOT NULL,
    recipient       TEXT NOT NULL,
    sent_from       TEXT NOT NULL,
    idempotency_key TEXT,
    spooled         INTEGER NOT NULL,
    request         TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX messages_address_idx ON messages (tenant_id, address_id, id);

-- The part of a message that changes. It has no index but its key, so that changing it moves no index entries. `wait` says what an
-- unfinished message waits for: 0 nothing (it is final), 1 an attempt, 2 its owner, 3 a receipt, 4 a person. `due_at` is set for 1, 3 and 4,
-- `owner` for 2. `revision` is raised by each write. `agenda` is the agenda row that guards the message, `history` refers to its entries in
-- the log.
CREATE TABLE states (
    tenant_id     INTEGER NOT NULL,
    id            BLOB NOT NULL,
    status        INTEGER NOT NULL,
    wait          INTEGER NOT NULL,
    held          INTEGER NOT NULL,
    due_at        INTEGER,
    owner         INTEGER,
    fence         INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    channel       INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    agenda        INTEGER,
    provider      TEXT NOT NULL,
    detail        TEXT NOT NULL,
    history       BLOB NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

-- Messages that failed (kind 1) and messages that are held (kind 2): few, and looked for.
CREATE TABLE flagged (
    tenant_id INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    id        BLOB NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
) STRICT, WITHOUT ROWID;

-- Which messages to look at again: a row per batch of them. Either `owner` makes an attempt of each, or the first of them is due at
-- `due_at`. `ids` holds 16 bytes a message. A row is a hint; `states` decides.
CREATE TABLE agenda (
    tenant_id     INTEGER NOT NULL,
    id            INTEGER NOT NULL,
    shard         INTEGER NOT NULL,
    owner         INTEGER,
    due_at        INTEGER,
    connection_id BLOB,
    expires_at    INTEGER NOT NULL,
    ids           BLOB NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX agenda_due_idx ON agenda (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_owner_idx ON agenda (owner) WHERE owner IS NOT NULL;

-- What happened: a row per tenant and transaction. `position` counts without a gap, in the order of commits. `entries` is a JSON array of
-- [kind, resource, sequence, time, changes].
CREATE TABLE log (
    tenant_id   INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    batch       INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    entries     TEXT NOT NULL,
    PRIMARY KEY (tenant_id, position),
    UNIQUE (tenant_id, batch)
) STRICT, WITHOUT ROWID;

-- The newest position in the log of a tenant.
CREATE TABLE log_heads (
    tenant_id INTEGER NOT NULL PRIMARY KEY,
    position  INTEGER NOT NULL
) STRICT;

-- Where the log tells of a resource other than a message.
CREATE TABLE resource_log (
    tenant_id   INTEGER NOT NULL,
    resource_id BLOB NOT NULL,
    sequence    INTEGER NOT NULL,
    batch       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, resource_id, sequence)
) STRICT, WITHOUT ROWID;

-- Parts of requests too large for a row of the hot path, written and synced before the message is accepted.
CREATE TABLE spool_chunks (
    tenant_id  INTEGER NOT NULL,
    message_id BLOB NOT NULL,
    chunk      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (tenant_id, message_id, chunk)
) STRICT;

CREATE INDEX spool_chunks_created_idx ON spool_chunks (created_at);

-- Which provider messages were received already.
CREATE TABLE inbound_keys (
    tenant_id     INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    provider_id   TEXT NOT NULL,
    message_id    BLOB NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, provider_id)
) STRICT;

-- Local to the coordinator: the processes that are or were alive.
CREATE TABLE nodes (
    id      INTEGER NOT NULL PRIMARY KEY,
    beat    INTEGER NOT NULL,
    dead    INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT;
