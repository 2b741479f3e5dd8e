-- Numbers that tell nothing: a secret, and the order in which items were given; who did what.
ALTER TABLE project ADD COLUMN secret BIGINT;
UPDATE project SET secret = {secret};
ALTER TABLE items ADD COLUMN position INTEGER;
UPDATE items SET position = id;
CREATE TABLE events (
  number {serial} PRIMARY KEY, at BIGINT NOT NULL, "by" INTEGER REFERENCES users (id),
  action TEXT NOT NULL, "user" INTEGER NOT NULL REFERENCES users (id)
);
