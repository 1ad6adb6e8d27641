-- Connections that keep sessions are looked for by their kind, once a second.
CREATE INDEX connections_kind_idx ON connections (kind, tenant_id, id);
