-- Projects that grow: a count of changes; what leads decide; tokens for programs.
ALTER TABLE project ADD COLUMN revision INTEGER;
UPDATE project SET revision = 0;
ALTER TABLE sessions ADD COLUMN name TEXT;
CREATE TABLE decisions (
  number {serial} PRIMARY KEY, at BIGINT NOT NULL, "by" INTEGER NOT NULL REFERENCES users (id),
  item INTEGER NOT NULL REFERENCES items (id), which INTEGER, voids TEXT NOT NULL
);
