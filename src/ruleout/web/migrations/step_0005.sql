CREATE INDEX ix_items_gold ON items (place) WHERE gold IS NOT NULL;
