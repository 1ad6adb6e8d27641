-- What messages took over from the reservation of their broadcast, and what is set aside for them now.
ALTER TABLE broadcast_counts ADD COLUMN prepaid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE broadcast_counts ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
