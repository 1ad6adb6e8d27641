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

-- Only transfers of senders whose daily spending is limited bear one.
CREATE INDEX ledger_sender_idx ON ledger (tenant_id, sender_id, recorded_at) WHERE sender_id IS NOT NULL;

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
