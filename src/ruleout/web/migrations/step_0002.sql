-- Accounts: passwords, invites, sessions; and rounds that hold imported answers.
ALTER TABLE users ADD COLUMN password TEXT;
CREATE TABLE invites (
  token TEXT NOT NULL PRIMARY KEY, "user" INTEGER NOT NULL REFERENCES users (id),
  expires BIGINT NOT NULL
);
CREATE INDEX ix_invites_user ON invites ("user");
CREATE TABLE sessions (
  token TEXT NOT NULL PRIMARY KEY, "user" INTEGER NOT NULL REFERENCES users (id),
  expires BIGINT NOT NULL, began BIGINT NOT NULL, seconds INTEGER NOT NULL
);
CREATE INDEX ix_sessions_user ON sessions ("user");
CREATE INDEX ix_sessions_expires ON sessions (expires);
-- only postgresql
ALTER TABLE slots DROP CONSTRAINT uq_slots_holder_item;
-- only sqlite, which cannot drop a constraint: the table is written anew without it
ALTER TABLE slots RENAME TO slots_0001;
-- only sqlite
CREATE TABLE slots (
  item INTEGER NOT NULL REFERENCES items (id), round INTEGER NOT NULL, place INTEGER NOT NULL,
  needed BOOLEAN NOT NULL, test BOOLEAN NOT NULL, question INTEGER REFERENCES questions (id),
  holder INTEGER REFERENCES users (id), expires BIGINT,
  answer INTEGER REFERENCES answers (number), PRIMARY KEY (item, round),
  CONSTRAINT ck_slots_held CHECK ((question IS NULL) = (holder IS NULL)),
  CONSTRAINT ck_slots_until CHECK ((question IS NULL) = (expires IS NULL)),
  CONSTRAINT ck_slots_asked CHECK (answer IS NULL OR question IS NOT NULL)
);
-- only sqlite
INSERT INTO slots SELECT * FROM slots_0001;
-- only sqlite
DROP TABLE slots_0001;
-- only sqlite
CREATE UNIQUE INDEX uq_slots_question ON slots (question) WHERE question IS NOT NULL;
-- only sqlite
CREATE UNIQUE INDEX uq_slots_answer ON slots (answer) WHERE answer IS NOT NULL;
-- only sqlite
CREATE INDEX ix_slots_free ON slots (test, round, place) WHERE question IS NULL AND {needed};
-- only sqlite
CREATE INDEX ix_slots_expires ON slots (expires) WHERE question IS NOT NULL AND answer IS NULL;
-- only sqlite
CREATE INDEX ix_slots_left ON slots (item) WHERE answer IS NULL AND {needed};
-- Nobody fills two rounds of an item, except with answers that were imported.
CREATE UNIQUE INDEX uq_slots_holder_item ON slots (holder, item) WHERE {needed} OR {test};
-- As ix_slots_expires, in words that no other index has: PostgreSQL might take that one.
CREATE INDEX ix_slots_open ON slots (holder, question) WHERE holder IS NOT NULL AND answer IS NULL;
CREATE INDEX ix_slots_given ON slots (holder) WHERE answer IS NOT NULL;
CREATE INDEX ix_slots_further ON slots (answer) WHERE {further};
CREATE INDEX ix_answers_skips ON answers ("user") WHERE kind = 'skip';
