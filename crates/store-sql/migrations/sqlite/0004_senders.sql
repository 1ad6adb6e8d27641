-- What a sender may do. `allowed_countries` is a JSON array, empty for all; `daily_spend_limit` is in millionths of a US dollar.
ALTER TABLE senders ADD COLUMN email_receiving INTEGER NOT NULL DEFAULT 0;
ALTER TABLE senders ADD COLUMN allowed_countries TEXT NOT NULL DEFAULT '[]';
ALTER TABLE senders ADD COLUMN daily_spend_limit INTEGER;

-- How fast a connection may be used, as JSON.
ALTER TABLE connections ADD COLUMN throttle TEXT;

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
