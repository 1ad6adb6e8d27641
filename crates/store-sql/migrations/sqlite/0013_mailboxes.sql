-- To which connection mail for an address comes. An address has one; a mail that comes in names nothing else.
CREATE TABLE mailboxes (
    address       TEXT NOT NULL PRIMARY KEY,
    tenant_id     INTEGER NOT NULL,
    connection_id BLOB NOT NULL,
    trusted       INTEGER NOT NULL,
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
) STRICT;

CREATE UNIQUE INDEX mailboxes_connection_idx ON mailboxes (tenant_id, connection_id);
