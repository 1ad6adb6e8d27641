-- What follows from the oldest encryption key, by which a node knows that it has the same keys as the others.
ALTER TABLE worlds ADD COLUMN key_check BYTEA;
