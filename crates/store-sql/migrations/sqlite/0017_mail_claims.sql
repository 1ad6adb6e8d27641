-- A claim on an inbound address needs a proof. That it was named first is none, so such claims are pending again.
DELETE FROM mailboxes WHERE trusted = 0;
ALTER TABLE mailboxes RENAME COLUMN trusted TO proof;

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
