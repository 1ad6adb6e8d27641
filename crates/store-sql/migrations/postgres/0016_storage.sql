-- How many bytes of messages a world may keep, and how many it keeps. Worlds without a quota have no row, and are not counted.
CREATE TABLE storage_quotas (
    tenant_id    BIGINT NOT NULL PRIMARY KEY,
    max_bytes    BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL
);
