-- Gold items are found by an index, however many others there are.
CREATE INDEX ix_items_gold ON items (place) WHERE gold IS NOT NULL;
