-- What a sender may do. `allowed_countries` is a JSON array, empty for all; `daily_spend_limit` is in millionths of a US dollar.
ALTER TABLE senders ADD COLUMN email_receiving SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE senders ADD COLUMN allowed_countries TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE senders ADD COLUMN daily_spend_limit BIGINT;

-- How fast a connection may be used, as JSON.
ALTER TABLE connections ADD COLUMN throttle TEXT COLLATE "C";

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
