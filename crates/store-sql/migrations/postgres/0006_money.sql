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

-- Only transfers of senders whose daily spending is limited bear one.
CREATE INDEX ledger_sender_idx ON ledger (tenant_id, sender_id, recorded_at) WHERE sender_id IS NOT NULL;

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
