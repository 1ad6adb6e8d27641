-- The schema. Times are Unix milliseconds. Numbers that stand for words are the `number()` of the domain's enumerations.
-- `tenant_id` is the world, and begins every key of tenant data.

CREATE TABLE projects (
    id         UUID NOT NULL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    colour     TEXT COLLATE "C",
    team_id    UUID NOT NULL,
    team_name  TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);

-- Directory: which world a project's environment is, and the epoch of its configuration. `key_check` follows from the oldest encryption
-- key: by it a node knows that it has the same keys as the others.
CREATE TABLE worlds (
    tenant_id   BIGINT NOT NULL PRIMARY KEY,
    project_id  UUID NOT NULL REFERENCES projects (id),
    environment TEXT COLLATE "C" NOT NULL CHECK (environment IN ('live', 'test')),
    epoch       BIGINT NOT NULL,
    key_check   BYTEA,
    UNIQUE (project_id, environment)
);

-- Directory: which world a key opens.
-- `last_used_at` can be some minutes old: uses are written rarely.
CREATE TABLE api_keys (
    tenant_id    BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id           UUID NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    hash         BYTEA NOT NULL UNIQUE,
    permissions  TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    revoked_at   BIGINT,
    expires_at   BIGINT,
    last_used_at BIGINT,
    PRIMARY KEY (tenant_id, id)
);

-- `allowed_countries` is a JSON array, empty for all; `daily_spend_limit` is in millionths of a US dollar.
CREATE TABLE senders (
    tenant_id         BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id                UUID NOT NULL,
    name              TEXT COLLATE "C" NOT NULL,
    phone_number      TEXT COLLATE "C" NOT NULL,
    is_default        SMALLINT NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    email_receiving   SMALLINT NOT NULL DEFAULT 0,
    allowed_countries TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    daily_spend_limit BIGINT,
    PRIMARY KEY (tenant_id, id)
);

-- `throttle` says how fast it may be used, as JSON; `trusted` whether the operator set it up.
CREATE TABLE connections (
    tenant_id  BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id         UUID NOT NULL,
    sender_id  UUID NOT NULL,
    channel    SMALLINT NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    settings   TEXT COLLATE "C" NOT NULL,
    sealed     BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    throttle   TEXT COLLATE "C",
    trusted    SMALLINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, sender_id, channel)
);

-- Providers name a connection alone when they call.
CREATE INDEX connections_id_idx ON connections (id);
-- Connections that keep sessions are looked for by their kind, once a second.
CREATE INDEX connections_kind_idx ON connections (kind, tenant_id, id);

-- `name_key` is the name in lower case, by which two contacts may turn out to be one person; `detail` has names, preferences and the
-- caller's data, as JSON.
CREATE TABLE contacts (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    country    TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version    BIGINT NOT NULL DEFAULT 0,
    name_key   TEXT COLLATE "C",
    detail     TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX contacts_name_idx ON contacts (tenant_id, name_key, id) WHERE name_key IS NOT NULL;

-- One identifier of one kind. Messages point here; merging contacts moves addresses and nothing else. A contact that a message made has
-- the id of its address.
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

CREATE INDEX addresses_contact_idx ON addresses (tenant_id, contact_id) WHERE contact_id <> id;

-- Addresses that were taken from their contact. The messages that point to them are still of that contact.
CREATE TABLE removed_addresses (
    tenant_id  BIGINT NOT NULL,
    id         UUID NOT NULL,
    kind       SMALLINT NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    contact_id UUID NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX removed_addresses_identifier_idx ON removed_addresses (tenant_id, identifier);
CREATE INDEX removed_addresses_contact_idx ON removed_addresses (tenant_id, contact_id);

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
CREATE INDEX messages_received_idx ON messages (tenant_id, recipient, id) WHERE direction = 2;

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
-- `due_at`. `ids` holds 16 bytes a message. At `decide_at`, one of them is decided about
-- even if no attempt can start. A row is a hint; `states` decides.
CREATE TABLE agenda (
    tenant_id     BIGINT NOT NULL,
    id            BIGINT NOT NULL,
    shard         SMALLINT NOT NULL,
    owner         BIGINT,
    due_at        BIGINT,
    connection_id UUID,
    bulk          SMALLINT NOT NULL,
    decide_at     BIGINT NOT NULL,
    ids           BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITH (toast_tuple_target = 8160);

-- Rows live for seconds: the ids stay in the row, uncompressed, up to 8 KB.
ALTER TABLE agenda ALTER COLUMN ids SET STORAGE EXTERNAL;

CREATE INDEX agenda_due_idx ON agenda (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX agenda_owner_idx ON agenda (owner) WHERE owner IS NOT NULL;

-- What happened: a row per tenant and transaction. `position` counts without a gap, in the order of commits. `entries` is a JSON array of
-- [kind, resource, sequence, time, changes], compressed with LZ4.
CREATE TABLE log (
    tenant_id   BIGINT NOT NULL,
    position    BIGINT NOT NULL,
    batch       BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    entries     BYTEA NOT NULL,
    PRIMARY KEY (tenant_id, position),
    UNIQUE (tenant_id, batch)
) WITH (toast_tuple_target = 8160);

-- The entries are compressed already, and stay in the row up to 8 KB.
ALTER TABLE log ALTER COLUMN entries SET STORAGE EXTERNAL;

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
    provider_key  TEXT COLLATE "C" NOT NULL,
    message_id    UUID NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, provider_key)
);

-- The processes that are or were alive.
CREATE TABLE nodes (
    id      BIGINT NOT NULL PRIMARY KEY,
    beat    BIGINT NOT NULL,
    dead    SMALLINT NOT NULL,
    beat_at BIGINT NOT NULL
);

-- Where events are posted to. `sender_id` of zeros: the world's own.
CREATE TABLE webhooks (
    tenant_id       BIGINT NOT NULL REFERENCES worlds (tenant_id),
    sender_id       UUID NOT NULL,
    url             TEXT COLLATE "C" NOT NULL,
    events          TEXT COLLATE "C" NOT NULL,
    active          SMALLINT NOT NULL,
    sealed          BYTEA NOT NULL,
    failing_since   BIGINT,
    disabled_reason TEXT COLLATE "C",
    created_at      BIGINT NOT NULL,
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
    reason      TEXT COLLATE "C",
    replays     SMALLINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX deliveries_due_idx ON deliveries (tenant_id, sender_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_resource_idx ON deliveries (tenant_id, resource_id, id);
CREATE INDEX deliveries_unfinished_idx ON deliveries (tenant_id, id) WHERE status <> 2;

-- What a caller said of one channel of an address. A channel that was only used has no row.
CREATE TABLE contact_channels (
    tenant_id  BIGINT NOT NULL,
    address_id UUID NOT NULL,
    channel    SMALLINT NOT NULL,
    hidden     SMALLINT NOT NULL,
    verified   SMALLINT,
    label      TEXT COLLATE "C",
    country    TEXT COLLATE "C",
    metadata   TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, address_id, channel)
);

-- Contacts that became part of another one. They are not in `contacts` any more, so that no list has to leave them out.
CREATE TABLE merged_contacts (
    tenant_id BIGINT NOT NULL,
    id        UUID NOT NULL,
    target_id UUID NOT NULL,
    merged_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX merged_contacts_target_idx ON merged_contacts (tenant_id, target_id);

-- Addresses that were erased a moment ago. A message that was accepted at that moment is erased after it; then the row goes.
CREATE TABLE erasures (
    tenant_id  BIGINT NOT NULL,
    address_id UUID NOT NULL,
    kind       SMALLINT NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    erased_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, address_id)
);

-- What a provider said last of a sender's business account.
CREATE TABLE business_accounts (
    tenant_id  BIGINT NOT NULL REFERENCES worlds (tenant_id),
    sender_id  UUID NOT NULL,
    version    BIGINT NOT NULL,
    account    TEXT COLLATE "C" NOT NULL,
    unsent     SMALLINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, sender_id)
);

-- The operator's numbers, per world. `id` is set while the world holds the number: then `status`, `renews_at` and `updated_at` are
-- its holder's, and `sender_id` is the sender that it is assigned to.
CREATE TABLE phone_numbers (
    tenant_id     BIGINT NOT NULL,
    phone_number  TEXT COLLATE "C" NOT NULL,
    country       TEXT COLLATE "C" NOT NULL,
    capabilities  SMALLINT NOT NULL,
    monthly_price BIGINT NOT NULL,
    upfront_cost  BIGINT NOT NULL,
    monthly_cost  BIGINT NOT NULL,
    is_free       SMALLINT NOT NULL,
    id            UUID,
    status        SMALLINT NOT NULL,
    name          TEXT COLLATE "C",
    sender_id     UUID,
    renews_at     BIGINT,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, phone_number)
);

CREATE UNIQUE INDEX phone_numbers_id_idx ON phone_numbers (tenant_id, id) WHERE id IS NOT NULL;
CREATE INDEX phone_numbers_available_idx ON phone_numbers (tenant_id, country, phone_number) WHERE id IS NULL;
CREATE INDEX phone_numbers_sender_idx ON phone_numbers (tenant_id, sender_id) WHERE sender_id IS NOT NULL;
CREATE INDEX phone_numbers_renewal_idx ON phone_numbers (renews_at) WHERE renews_at IS NOT NULL;

-- `due_at` is `expires_at` while the invitation is open.
CREATE TABLE invitations (
    tenant_id    BIGINT NOT NULL,
    id           UUID NOT NULL,
    version      BIGINT NOT NULL,
    status       SMALLINT NOT NULL,
    token_hash   BYTEA NOT NULL,
    sealed       BYTEA NOT NULL,
    client_name  TEXT COLLATE "C",
    client_email TEXT COLLATE "C",
    client_phone TEXT COLLATE "C",
    number_id    UUID,
    countries    TEXT COLLATE "C" NOT NULL,
    sender_id    UUID,
    expires_at   BIGINT NOT NULL,
    due_at       BIGINT,
    viewed_at    BIGINT,
    started_at   BIGINT,
    completed_at BIGINT,
    updated_at   BIGINT NOT NULL,
    walk         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Not unique, so that no key begins without the tenant: tokens are 256 random bits.
CREATE INDEX invitations_token_idx ON invitations (token_hash);
CREATE INDEX invitations_number_idx ON invitations (tenant_id, number_id) WHERE number_id IS NOT NULL;
CREATE INDEX invitations_due_idx ON invitations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX invitations_phone_idx ON invitations (tenant_id, client_phone) WHERE client_phone IS NOT NULL;
CREATE INDEX invitations_email_idx ON invitations (tenant_id, client_email) WHERE client_email IS NOT NULL;

-- The price list of the installation, and with a project's id lines that go before it. Shared by all worlds.
CREATE TABLE prices (
    project_id     UUID NOT NULL, -- zeros: for everybody
    channel        SMALLINT NOT NULL,
    country        TEXT COLLATE "C" NOT NULL,
    effective_from BIGINT NOT NULL,
    unit           SMALLINT NOT NULL,
    fee            BIGINT NOT NULL,
    provider       BIGINT NOT NULL,
    PRIMARY KEY (project_id, channel, country, effective_from)
);

-- A row a transfer, from the account `debit` to the account `credit`. The key names what it is for: nothing moves twice.
CREATE TABLE ledger (
    tenant_id   BIGINT NOT NULL,
    resource_id UUID NOT NULL,
    purpose     SMALLINT NOT NULL,
    part        SMALLINT NOT NULL,
    debit       SMALLINT NOT NULL,
    credit      SMALLINT NOT NULL,
    amount      BIGINT NOT NULL CHECK (amount > 0),
    sender_id   UUID,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, resource_id, purpose, part)
);

-- Only transfers of senders whose daily spending is limited bear one. The sum of a day is read from the index alone.
CREATE INDEX ledger_sender_idx ON ledger (tenant_id, sender_id, recorded_at) INCLUDE (debit, credit, amount) WHERE sender_id IS NOT NULL;

-- The list of entries: each purpose in the order of time.
CREATE INDEX ledger_purpose_idx ON ledger (tenant_id, purpose, recorded_at, resource_id, part);

-- What the transfers of a world add up to.
CREATE TABLE balances (
    tenant_id BIGINT NOT NULL PRIMARY KEY,
    available BIGINT NOT NULL,
    reserved  BIGINT NOT NULL,
    spent     BIGINT NOT NULL,
    limited   SMALLINT NOT NULL
) WITH (fillfactor = 50);

-- How channels do with all recipients of a country.
CREATE TABLE country_metrics (
    tenant_id BIGINT NOT NULL,
    channel   SMALLINT NOT NULL,
    country   TEXT COLLATE "C" NOT NULL,
    successes BIGINT NOT NULL,
    failures  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, channel, country)
);

-- Figures of an hour or a day by channel and country; `span` tells which, in milliseconds. `spent` is in micros of a US dollar; `within_…` and `later` count delivery times, each
-- time in one of them.
CREATE TABLE traffic (
    tenant_id   BIGINT NOT NULL,
    span        BIGINT NOT NULL,
    began       BIGINT NOT NULL,
    channel     SMALLINT NOT NULL,
    country     TEXT COLLATE "C" NOT NULL,
    sent        BIGINT NOT NULL,
    unconfirmed BIGINT NOT NULL,
    delivered   BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    spent       BIGINT NOT NULL,
    within_1s   BIGINT NOT NULL,
    within_2s   BIGINT NOT NULL,
    within_5s   BIGINT NOT NULL,
    within_15s  BIGINT NOT NULL,
    within_1m   BIGINT NOT NULL,
    within_5m   BIGINT NOT NULL,
    within_30m  BIGINT NOT NULL,
    later       BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, span, began, channel, country)
);

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
    cursor_id    UUID,
    starved      SMALLINT NOT NULL,
    total        BIGINT NOT NULL,
    html         TEXT COLLATE "C",
    body         TEXT COLLATE "C" NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX broadcasts_status_idx ON broadcasts (tenant_id, status, id);
CREATE INDEX broadcasts_due_idx ON broadcasts (due_at) WHERE due_at IS NOT NULL;

-- Its unique key begins with the recipient: a person who is erased is found by it. Written at import and once at hand-over, when
-- message_id (nil until then) is set: from then on the message says what became of the recipient. No index has the message, so that PostgreSQL's
-- update is HOT.
-- outcome is not 0 where the row itself must say it: the recipient failed or was skipped, or the message ended without news.
CREATE TABLE broadcast_contacts (
    tenant_id    BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    id           UUID NOT NULL,
    kind         SMALLINT NOT NULL,
    recipient    TEXT COLLATE "C" NOT NULL,
    message_id   UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    outcome      SMALLINT NOT NULL DEFAULT 0,
    variables    TEXT COLLATE "C" NOT NULL,
    failure      TEXT COLLATE "C",
    processed_at BIGINT,
    PRIMARY KEY (tenant_id, broadcast_id, id),
    UNIQUE (tenant_id, kind, recipient, broadcast_id)
) WITH (fillfactor = 50);

CREATE INDEX broadcast_contacts_outcome_idx ON broadcast_contacts (tenant_id, broadcast_id, outcome, id) WHERE outcome <> 0;

-- How far imports of recipients have come, so that one that was cut off goes on.
CREATE TABLE broadcast_imports (
    tenant_id    BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    read_rows    BIGINT NOT NULL,
    added        BIGINT NOT NULL,
    duplicates   BIGINT NOT NULL,
    invalid      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, name)
);

-- Links of broadcasts that are counted. A key is made from the broadcast and the address.
CREATE TABLE broadcast_links (
    tenant_id    BIGINT NOT NULL,
    key          BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    url          TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, key)
);

CREATE INDEX broadcast_links_idx ON broadcast_links (tenant_id, broadcast_id);

-- Who opened a link, by the end of the recipient's id. A row is written when somebody first does.
CREATE TABLE broadcast_clicks (
    tenant_id    BIGINT NOT NULL,
    broadcast_id UUID NOT NULL,
    key          BIGINT NOT NULL,
    recipient    BIGINT NOT NULL,
    clicks       BIGINT NOT NULL,
    first_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, broadcast_id, key, recipient)
);

-- Where recipients stand. Several rows per broadcast, so that sessions that write at once do not wait for each other; the sum counts.
-- `prepaid` and `held`: what messages took over from the reservation, and what is set aside for them now.
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
    prepaid      BIGINT NOT NULL DEFAULT 0,
    held         BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, broadcast_id, shard)
);

-- Under which ids a provider took messages, and parts of them, when that is all that its receipts name.
CREATE TABLE provider_refs (
    tenant_id     BIGINT NOT NULL,
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    message_id    UUID NOT NULL,
    attempt       SMALLINT NOT NULL,
    part          SMALLINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, reference)
);

-- Receipts as they came, of messages that are known.
CREATE TABLE receipts (
    tenant_id     BIGINT NOT NULL,
    id            UUID NOT NULL,
    message_id    UUID NOT NULL,
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    raw           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, message_id, id)
);

-- Receipts of which the message is not known yet, with what they say as JSON. Without `due_at` nobody looks for it any more.
CREATE TABLE stray_receipts (
    tenant_id     BIGINT NOT NULL REFERENCES worlds (tenant_id),
    id            UUID NOT NULL,
    connection_id UUID NOT NULL,
    reference     TEXT COLLATE "C" NOT NULL,
    kind          TEXT COLLATE "C" NOT NULL,
    happened_at   BIGINT NOT NULL,
    tries         SMALLINT NOT NULL,
    due_at        BIGINT,
    raw           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX stray_receipts_due_idx ON stray_receipts (due_at) WHERE due_at IS NOT NULL;

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

-- To which connection mail for an address comes. An address has one; a mail that comes in names nothing else.
CREATE TABLE mailboxes (
    address       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id     BIGINT NOT NULL,
    connection_id UUID NOT NULL,
    proof         SMALLINT NOT NULL,
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX mailboxes_connection_idx ON mailboxes (tenant_id, connection_id);

-- How many bytes of messages a world may keep, and how many it keeps. Worlds without a quota have no row, and are not counted.
CREATE TABLE storage_quotas (
    tenant_id    BIGINT NOT NULL PRIMARY KEY,
    max_bytes    BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL
);

-- What the operator asks of the content of broadcasts, as JSON. Worlds without a row have the default.
CREATE TABLE review_policies (
    tenant_id BIGINT NOT NULL PRIMARY KEY,
    policy    TEXT COLLATE "C" NOT NULL
);

-- The address that mail for a connection comes to once it is claimed. Only a row of `mailboxes` is a claim.
CREATE TABLE inbound_addresses (
    tenant_id     BIGINT NOT NULL,
    connection_id UUID NOT NULL,
    address       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, connection_id),
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
);

-- Domains that the operator gave to projects.
CREATE TABLE mail_domains (
    domain     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    project_id UUID NOT NULL REFERENCES projects (id),
    created_at BIGINT NOT NULL
);

-- Codes that were mailed to addresses. They outlive their connections, so that the limits hold.
CREATE TABLE mail_codes (
    tenant_id BIGINT NOT NULL,
    address   TEXT COLLATE "C" NOT NULL,
    hash      BYTEA NOT NULL,
    tries     SMALLINT NOT NULL,
    sends     SMALLINT NOT NULL,
    first_at  BIGINT NOT NULL,
    sent_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, address)
);

-- People who sign in to the dashboard. A password is a hash; `factor` is sealed.
CREATE TABLE users (
    id             UUID NOT NULL PRIMARY KEY,
    email          TEXT COLLATE "C" NOT NULL UNIQUE,
    password       TEXT COLLATE "C" NOT NULL,
    factor         BYTEA,
    factor_version BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);

-- The projects of each user, and their role there.
CREATE TABLE memberships (
    user_id    UUID NOT NULL REFERENCES users (id),
    project_id UUID NOT NULL REFERENCES projects (id),
    role       SMALLINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, project_id)
);

CREATE INDEX memberships_project_idx ON memberships (project_id);

-- Browsers that are signed in, by the hash of their cookie. `project_id` and `environment`: what they view.
CREATE TABLE sessions (
    hash        BYTEA NOT NULL PRIMARY KEY,
    user_id     UUID NOT NULL REFERENCES users (id),
    project_id  UUID NOT NULL REFERENCES projects (id),
    environment TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);

CREATE INDEX sessions_user_idx ON sessions (user_id);
CREATE INDEX sessions_expired_idx ON sessions (expires_at);

-- Who changed what; rows are only added. `actor`: an email address, the id of an API key or invitation, or `command line`. `before` and
-- `after`: JSON of the members that changed, without secrets, contents of messages and personal data of contacts.
CREATE TABLE audit_log (
    tenant_id   BIGINT NOT NULL,
    id          UUID NOT NULL,
    actor_kind  SMALLINT NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    actor_label TEXT COLLATE "C" NOT NULL,
    origin      TEXT COLLATE "C" NOT NULL,
    kind        TEXT COLLATE "C" NOT NULL,
    verb        TEXT COLLATE "C" NOT NULL,
    resource    TEXT COLLATE "C" NOT NULL,
    before      TEXT COLLATE "C",
    after       TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX audit_log_actor_idx ON audit_log (tenant_id, actor, id);
CREATE INDEX audit_log_resource_idx ON audit_log (tenant_id, resource, id);

-- What the writer passes rows as.
CREATE TYPE message_row AS (
    tenant_id       BIGINT,
    id              UUID,
    direction       SMALLINT,
    message_type    SMALLINT,
    sender_id       UUID,
    address_id      UUID,
    kind            SMALLINT,
    identifier      TEXT,
    recipient       TEXT,
    sent_from       TEXT,
    idempotency_key TEXT,
    spooled         INTEGER,
    request         TEXT
);

CREATE TYPE state_row AS (
    tenant_id     BIGINT,
    id            UUID,
    status        SMALLINT,
    wait          SMALLINT,
    held          SMALLINT,
    due_at        BIGINT,
    owner         BIGINT,
    fence         BIGINT,
    version       BIGINT,
    revision      BIGINT,
    expires_at    BIGINT,
    updated_at    BIGINT,
    channel       SMALLINT,
    connection_id UUID,
    agenda        BIGINT,
    provider      TEXT,
    detail        TEXT,
    history       BYTEA,
    named_by      UUID,
    reference     TEXT
);

CREATE TYPE recipient_row AS (
    tenant_id  BIGINT,
    id         UUID,
    kind       SMALLINT,
    identifier TEXT,
    contact_id UUID,
    country    TEXT,
    at         BIGINT,
    sender_id  UUID,
    mark       TEXT,
    epoch      BIGINT,
    folded     TEXT
);

CREATE TYPE reference_row AS (
    tenant_id     BIGINT,
    connection_id UUID,
    reference     TEXT,
    message_id    UUID,
    attempt       SMALLINT,
    part          SMALLINT
);

CREATE TYPE receipt_row AS (
    tenant_id     BIGINT,
    message_id    UUID,
    id            UUID,
    connection_id UUID,
    reference     TEXT,
    raw           TEXT
);
