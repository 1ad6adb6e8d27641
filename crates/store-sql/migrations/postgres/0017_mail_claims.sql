-- A claim on an inbound address needs a proof. That it was named first is none, so such claims are pending again.
DELETE FROM mailboxes WHERE trusted = 0;
ALTER TABLE mailboxes RENAME COLUMN trusted TO proof;

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
