-- What a contact is beyond the rows that sending makes. Those rows leave the new columns as they are by default.
ALTER TABLE contacts ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
-- The name in lower case, by which two contacts may turn out to be one person.
ALTER TABLE contacts ADD COLUMN name_key TEXT COLLATE "C";
-- Names, preferences and the caller's data, as JSON.
ALTER TABLE contacts ADD COLUMN detail TEXT COLLATE "C";

CREATE INDEX contacts_name_idx ON contacts (tenant_id, name_key, id) WHERE name_key IS NOT NULL;

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
