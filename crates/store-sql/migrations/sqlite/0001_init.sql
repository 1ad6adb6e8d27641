-- The schema. Times are Unix milliseconds. Numbers that stand for words are the `number()` of the domain's enumerations.
-- `tenant_id` is the world, and begins every key of tenant data.

CREATE TABLE projects (
    id         BLOB NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    colour     TEXT,
    team_id    BLOB NOT NULL,
    team_name  TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Directory: which world a project's environment is, and the epoch of its configuration. `key_check` follows from the oldest encryption
-- key: by it a node knows that it has the same keys as the others.
CREATE TABLE worlds (
    tenant_id   INTEGER NOT NULL PRIMARY KEY,
    project_id  BLOB NOT NULL REFERENCES projects (id),
    environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
    epoch       INTEGER NOT NULL,
    key_check   BLOB,
    UNIQUE (project_id, environment)
) STRICT;

-- Directory: which world a key opens.
-- `last_used_at` can be some minutes old: uses are written rarely.
CREATE TABLE api_keys (
    tenant_id    INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id           BLOB NOT NULL,
    name         TEXT NOT NULL,
    hash         BLOB NOT NULL UNIQUE,
    permissions  TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    revoked_at   INTEGER,
    expires_at   INTEGER,
    last_used_at INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- `allowed_countries` is a JSON array, empty for all; `daily_spend_limit` is in millionths of a US dollar.
CREATE TABLE senders (
    tenant_id         INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id                BLOB NOT NULL,
    name              TEXT NOT NULL,
    phone_number      TEXT NOT NULL,
    is_default        INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    email_receiving   INTEGER NOT NULL DEFAULT 0,
    allowed_countries TEXT NOT NULL DEFAULT '[]',
    daily_spend_limit INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- `throttle` says how fast it may be used, as JSON; `trusted` whether the operator set it up.
CREATE TABLE connections (
    tenant_id  INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id         BLOB NOT NULL,
    sender_id  BLOB NOT NULL,
    channel    INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    settings   TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    throttle   TEXT,
    trusted    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sender_id, channel)
) STRICT;

-- Providers name a connection alone when they call.
CREATE INDEX connections_id_idx ON connections (id);
-- Connections that keep sessions are looked for by their kind, once a second.
CREATE INDEX connections_kind_idx ON connections (kind, tenant_id, id);

-- `name_key` is the name in lower case, by which two contacts may turn out to be one person; `detail` has names, preferences and the
-- caller's data, as JSON.
CREATE TABLE contacts (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    country    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL DEFAULT 0,
    name_key   TEXT,
    detail     TEXT,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX contacts_name_idx ON contacts (tenant_id, name_key, id) WHERE name_key IS NOT NULL;

-- One identifier of one kind. Messages point here; merging contacts moves addresses and nothing else. A contact that a message made has
-- the id of its address.
CREATE TABLE addresses (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    contact_id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, kind, identifier)
) STRICT, WITHOUT ROWID;

CREATE INDEX addresses_contact_idx ON addresses (tenant_id, contact_id) WHERE contact_id <> id;

-- Addresses that were taken from their contact. The messages that point to them are still of that contact.
CREATE TABLE removed_addresses (
    tenant_id  INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    contact_id BLOB NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_addresses_identifier_idx ON removed_addresses (tenant_id, identifier);
CREATE INDEX removed_addresses_contact_idx ON removed_addresses (tenant_id, contact_id);

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
) STRICT, WITHOUT ROWID;

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
CREATE INDEX messages_received_idx ON messages (tenant_id, recipient, id) WHERE direction = 2;

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
-- `due_at`. `ids` holds 16 bytes a message. At `decide_at`, one of them is decided about
-- even if no attempt can start. A row is a hint; `states` decides.
CREATE TABLE agenda (
    tenant_id     INTEGER NOT NULL,
    id            INTEGER NOT NULL,
    shard         INTEGER NOT NULL,
    owner         INTEGER,
    due_at        INTEGER,
    connection_id BLOB,
    bulk          INTEGER NOT NULL,
    decide_at     INTEGER NOT NULL,
    ids           BLOB NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX agenda_due_idx ON agenda (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_owner_idx ON agenda (owner) WHERE owner IS NOT NULL;

-- What happened: a row per tenant and transaction. `position` counts without a gap, in the order of commits. `entries` is a JSON array of
-- [kind, resource, sequence, time, changes], compressed with LZ4.
CREATE TABLE log (
    tenant_id   INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    batch       INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    entries     BLOB NOT NULL,
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
    provider_key  TEXT NOT NULL,
    message_id    BLOB NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, provider_key)
) STRICT;

-- The processes that are or were alive.
CREATE TABLE nodes (
    id      INTEGER NOT NULL PRIMARY KEY,
    beat    INTEGER NOT NULL,
    dead    INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT;

-- Where events are posted to. `sender_id` of zeros: the world's own.
CREATE TABLE webhooks (
    tenant_id       INTEGER NOT NULL REFERENCES worlds (tenant_id),
    sender_id       BLOB NOT NULL,
    url             TEXT NOT NULL,
    events          TEXT NOT NULL,
    active          INTEGER NOT NULL,
    sealed          BLOB NOT NULL,
    failing_since   INTEGER,
    disabled_reason TEXT,
    created_at      INTEGER NOT NULL,
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
    reason      TEXT,
    replays     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX deliveries_due_idx ON deliveries (tenant_id, sender_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_resource_idx ON deliveries (tenant_id, resource_id, id);
CREATE INDEX deliveries_unfinished_idx ON deliveries (tenant_id, id) WHERE status <> 2;

-- What a caller said of one channel of an address. A channel that was only used has no row.
CREATE TABLE contact_channels (
    tenant_id  INTEGER NOT NULL,
    address_id BLOB NOT NULL,
    channel    INTEGER NOT NULL,
    hidden     INTEGER NOT NULL,
    verified   INTEGER,
    label      TEXT,
    country    TEXT,
    metadata   TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, address_id, channel)
) STRICT;

-- Contacts that became part of another one. They are not in `contacts` any more, so that no list has to leave them out.
CREATE TABLE merged_contacts (
    tenant_id INTEGER NOT NULL,
    id        BLOB NOT NULL,
    target_id BLOB NOT NULL,
    merged_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX merged_contacts_target_idx ON merged_contacts (tenant_id, target_id);

-- Addresses that were erased a moment ago. A message that was accepted at that moment is erased after it; then the row goes.
CREATE TABLE erasures (
    tenant_id  INTEGER NOT NULL,
    address_id BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    erased_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, address_id)
) STRICT;

-- What a provider said last of a sender's business account.
CREATE TABLE business_accounts (
    tenant_id  INTEGER NOT NULL REFERENCES worlds (tenant_id),
    sender_id  BLOB NOT NULL,
    version    INTEGER NOT NULL,
    account    TEXT NOT NULL,
    unsent     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, sender_id)
) STRICT;

-- The operator's numbers, per world. `id` is set while the world holds the number: then `status`, `renews_at` and `updated_at` are
-- its holder's, and `sender_id` is the sender that it is assigned to.
CREATE TABLE phone_numbers (
    tenant_id     INTEGER NOT NULL,
    phone_number  TEXT NOT NULL,
    country       TEXT NOT NULL,
    capabilities  INTEGER NOT NULL,
    monthly_price INTEGER NOT NULL,
    upfront_cost  INTEGER NOT NULL,
    monthly_cost  INTEGER NOT NULL,
    is_free       INTEGER NOT NULL,
    id            BLOB,
    status        INTEGER NOT NULL,
    name          TEXT,
    sender_id     BLOB,
    renews_at     INTEGER,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, phone_number)
) STRICT;

CREATE UNIQUE INDEX phone_numbers_id_idx ON phone_numbers (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX phone_numbers_available_idx ON phone_numbers (tenant_id, country, phone_number) WHERE id IS NULL;
CREATE INDEX phone_numbers_sender_idx ON phone_numbers (tenant_id, sender_id) WHERE sender_id IS NOT NULL;
CREATE INDEX phone_numbers_renewal_idx ON phone_numbers (renews_at) WHERE renews_at IS NOT NULL;

-- `due_at` is `expires_at` while the invitation is open.
CREATE TABLE invitations (
    tenant_id    INTEGER NOT NULL,
    id           BLOB NOT NULL,
    version      INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    token_hash   BLOB NOT NULL,
    sealed       BLOB NOT NULL,
    client_name  TEXT,
    client_email TEXT,
    client_phone TEXT,
    number_id    BLOB,
    countries    TEXT NOT NULL,
    sender_id    BLOB,
    expires_at   INTEGER NOT NULL,
    due_at       INTEGER,
    viewed_at    INTEGER,
    started_at   INTEGER,
    completed_at INTEGER,
    updated_at   INTEGER NOT NULL,
    walk         TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- Not unique, so that no key begins without the tenant: tokens are 256 random bits.
CREATE INDEX invitations_token_idx ON invitations (token_hash);
CREATE INDEX invitations_number_idx ON invitations (tenant_id, number_id) WHERE number_id IS NOT NULL;
CREATE INDEX invitations_due_idx ON invitations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX invitations_phone_idx ON invitations (tenant_id, client_phone) WHERE client_phone IS NOT NULL;
CREATE INDEX invitations_email_idx ON invitations (tenant_id, client_email) WHERE client_email IS NOT NULL;

-- The price list of the installation, and with a project's id lines that go before it. Shared by all worlds.
CREATE TABLE prices (
    project_id     BLOB NOT NULL, -- zeros: for everybody
    channel        INTEGER NOT NULL,
    country        TEXT NOT NULL,
    effective_from INTEGER NOT NULL,
    unit           INTEGER NOT NULL,
    fee            INTEGER NOT NULL,
    provider       INTEGER NOT NULL,
    PRIMARY KEY (project_id, channel, country, effective_from)
) STRICT, WITHOUT ROWID;

-- A row a transfer, from the account `debit` to the account `credit`. The key names what it is for: nothing moves twice.
CREATE TABLE ledger (
    tenant_id   INTEGER NOT NULL,
    resource_id BLOB NOT NULL,
    purpose     INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    debit       INTEGER NOT NULL,
    credit      INTEGER NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount > 0),
    sender_id   BLOB,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, resource_id, purpose, part)
) STRICT, WITHOUT ROWID;

-- Only transfers of senders whose daily spending is limited bear one. The sum of a day is read from the index alone.
CREATE INDEX ledger_sender_idx ON ledger (tenant_id, sender_id, recorded_at, debit, credit, amount) WHERE sender_id IS NOT NULL;

-- The list of entries: each purpose in the order of time.
CREATE INDEX ledger_purpose_idx ON ledger (tenant_id, purpose, recorded_at, resource_id, part);

-- What the transfers of a world add up to.
CREATE TABLE balances (
    tenant_id INTEGER NOT NULL PRIMARY KEY,
    available INTEGER NOT NULL,
    reserved  INTEGER NOT NULL,
    spent     INTEGER NOT NULL,
    limited   INTEGER NOT NULL
) STRICT;

-- How channels do with all recipients of a country.
CREATE TABLE country_metrics (
    tenant_id INTEGER NOT NULL,
    channel   INTEGER NOT NULL,
    country   TEXT NOT NULL,
    successes INTEGER NOT NULL,
    failures  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, channel, country)
) STRICT, WITHOUT ROWID;

-- Figures of an hour or a day by channel and country; `span` tells which, in milliseconds. `spent` is in micros of a US dollar; `within_…` and `later` count delivery times, each
-- time in one of them.
CREATE TABLE traffic (
    tenant_id   INTEGER NOT NULL,
    span        INTEGER NOT NULL,
    began       INTEGER NOT NULL,
    channel     INTEGER NOT NULL,
    country     TEXT NOT NULL,
    sent        INTEGER NOT NULL,
    unconfirmed INTEGER NOT NULL,
    delivered   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    spent       INTEGER NOT NULL,
    within_1s   INTEGER NOT NULL,
    within_2s   INTEGER NOT NULL,
    within_5s   INTEGER NOT NULL,
    within_15s  INTEGER NOT NULL,
    within_1m   INTEGER NOT NULL,
    within_5m   INTEGER NOT NULL,
    within_30m  INTEGER NOT NULL,
    later       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, span, began, channel, country)
) STRICT, WITHOUT ROWID;

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
    cursor_id    BLOB,
    starved      INTEGER NOT NULL,
    total        INTEGER NOT NULL,
    html         TEXT,
    body         TEXT NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX broadcasts_status_idx ON broadcasts (tenant_id, status, id);
CREATE INDEX broadcasts_due_idx ON broadcasts (due_at) WHERE due_at IS NOT NULL;

-- Its unique key begins with the recipient: a person who is erased is found by it. Written at import and once at hand-over, when
-- message_id (nil until then) is set: from then on the message says what became of the recipient.
-- It has its size from the beginning, so that the row is overwritten in place.
-- outcome is not 0 where the row itself must say it: the recipient failed or was skipped, or the message ended without news.
CREATE TABLE broadcast_contacts (
    tenant_id    INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    id           BLOB NOT NULL,
    kind         INTEGER NOT NULL,
    recipient    TEXT NOT NULL,
    message_id   BLOB NOT NULL DEFAULT X'00000000000000000000000000000000',
    outcome      INTEGER NOT NULL DEFAULT 0,
    variables    TEXT NOT NULL,
    failure      TEXT,
    processed_at INTEGER,
    PRIMARY KEY (tenant_id, broadcast_id, id),
    UNIQUE (tenant_id, kind, recipient, broadcast_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX broadcast_contacts_outcome_idx ON broadcast_contacts (tenant_id, broadcast_id, outcome, id) WHERE outcome <> 0;

-- How far imports of recipients have come, so that one that was cut off goes on.
CREATE TABLE broadcast_imports (
    tenant_id    INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    name         TEXT NOT NULL,
    read_rows    INTEGER NOT NULL,
    added        INTEGER NOT NULL,
    duplicates   INTEGER NOT NULL,
    invalid      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, name)
) STRICT, WITHOUT ROWID;

-- Links of broadcasts that are counted. A key is made from the broadcast and the address.
CREATE TABLE broadcast_links (
    tenant_id    INTEGER NOT NULL,
    key          INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    url          TEXT NOT NULL,
    PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX broadcast_links_idx ON broadcast_links (tenant_id, broadcast_id);

-- Who opened a link, by the end of the recipient's id. A row is written when somebody first does.
CREATE TABLE broadcast_clicks (
    tenant_id    INTEGER NOT NULL,
    broadcast_id BLOB NOT NULL,
    key          INTEGER NOT NULL,
    recipient    INTEGER NOT NULL,
    clicks       INTEGER NOT NULL,
    first_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, key, recipient)
) STRICT, WITHOUT ROWID;

-- Where recipients stand. Several rows per broadcast, so that sessions that write at once do not wait for each other; the sum counts.
-- `prepaid` and `held`: what messages took over from the reservation, and what is set aside for them now.
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
    prepaid      INTEGER NOT NULL DEFAULT 0,
    held         INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, broadcast_id, shard)
) STRICT;

-- Under which ids a provider took messages, and parts of them, when that is all that its receipts name.
CREATE TABLE provider_refs (
    tenant_id     INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    message_id    BLOB NOT NULL,
    attempt       INTEGER NOT NULL,
    part          INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, reference)
) STRICT, WITHOUT ROWID;

-- Receipts as they came, of messages that are known.
CREATE TABLE receipts (
    tenant_id     INTEGER NOT NULL,
    id            BLOB NOT NULL,
    message_id    BLOB NOT NULL,
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    raw           TEXT NOT NULL,
    PRIMARY KEY (tenant_id, message_id, id)
) STRICT, WITHOUT ROWID;

-- Receipts of which the message is not known yet, with what they say as JSON. Without `due_at` nobody looks for it any more.
CREATE TABLE stray_receipts (
    tenant_id     INTEGER NOT NULL REFERENCES worlds (tenant_id),
    id            BLOB NOT NULL,
    connection_id BLOB NOT NULL,
    reference     TEXT NOT NULL,
    kind          TEXT NOT NULL,
    happened_at   INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    due_at        INTEGER,
    raw           TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX stray_receipts_due_idx ON stray_receipts (due_at) WHERE due_at IS NOT NULL;

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

-- To which connection mail for an address comes. An address has one; a mail that comes in names nothing else.
CREATE TABLE mailboxes (
    address       TEXT NOT NULL PRIMARY KEY,
    tenant_id     INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    proof         INTEGER NOT NULL,
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE UNIQUE INDEX mailboxes_connection_idx ON mailboxes (tenant_id, connection_id);

-- How many bytes of messages a world may keep, and how many it keeps. Worlds without a quota have no row, and are not counted.
CREATE TABLE storage_quotas (
    tenant_id    INTEGER NOT NULL PRIMARY KEY,
    max_bytes    INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT;

-- What the operator asks of the content of broadcasts, as JSON. Worlds without a row have the default.
CREATE TABLE review_policies (
    tenant_id INTEGER NOT NULL PRIMARY KEY,
    policy    TEXT NOT NULL
) STRICT;

-- The address that mail for a connection comes to once it is claimed. Only a row of `mailboxes` is a claim.
CREATE TABLE inbound_addresses (
    tenant_id     INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    address       TEXT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id),
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Domains that the operator gave to projects.
CREATE TABLE mail_domains (
    domain     TEXT NOT NULL PRIMARY KEY,
    project_id BLOB NOT NULL REFERENCES projects (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Codes that were mailed to addresses. They outlive their connections, so that the limits hold.
CREATE TABLE mail_codes (
    tenant_id INTEGER NOT NULL,
    address   TEXT NOT NULL,
    hash      BLOB NOT NULL,
    tries     INTEGER NOT NULL,
    sends     INTEGER NOT NULL,
    first_at  INTEGER NOT NULL,
    sent_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, address)
) STRICT, WITHOUT ROWID;

-- People who sign in to the dashboard. A password is a hash; `factor` is sealed.
CREATE TABLE users (
    id             BLOB NOT NULL PRIMARY KEY,
    email          TEXT NOT NULL UNIQUE,
    password       TEXT NOT NULL,
    factor         BLOB,
    factor_version INTEGER NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;

-- The projects of each user, and their role there.
CREATE TABLE memberships (
    user_id    BLOB NOT NULL REFERENCES users (id),
    project_id BLOB NOT NULL REFERENCES projects (id),
    role       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, project_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memberships_project_idx ON memberships (project_id);

-- Browsers that are signed in, by the hash of their cookie. `project_id` and `environment`: what they view.
CREATE TABLE sessions (
    hash        BLOB NOT NULL PRIMARY KEY,
    user_id     BLOB NOT NULL REFERENCES users (id),
    project_id  BLOB NOT NULL REFERENCES projects (id),
    environment TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_user_idx ON sessions (user_id);
CREATE INDEX sessions_expired_idx ON sessions (expires_at);

-- Who changed what; rows are only added. `actor`: an email address, the id of an API key or invitation, or `command line`. `before` and
-- `after`: JSON of the members that changed, without secrets, contents of messages and personal data of contacts.
CREATE TABLE audit_log (
    tenant_id   INTEGER NOT NULL,
    id          BLOB NOT NULL,
    actor_kind  INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    actor_label TEXT NOT NULL,
    origin      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    verb        TEXT NOT NULL,
    resource    TEXT NOT NULL,
    before      TEXT,
    after       TEXT,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE INDEX audit_log_actor_idx ON audit_log (tenant_id, actor, id);
CREATE INDEX audit_log_resource_idx ON audit_log (tenant_id, resource, id);
