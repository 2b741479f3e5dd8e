-- The first schema: settings, people, items, questions, answers, slots.
CREATE TABLE project (
  id {serial} PRIMARY KEY, settings TEXT NOT NULL, created BIGINT NOT NULL,
  CONSTRAINT ck_project_one CHECK (id = 1)
);
CREATE TABLE users (
  id {serial} PRIMARY KEY, name TEXT NOT NULL, folded TEXT NOT NULL, role TEXT NOT NULL,
  disabled BOOLEAN NOT NULL, added BIGINT NOT NULL,
  CONSTRAINT uq_users_name UNIQUE (name), CONSTRAINT uq_users_folded UNIQUE (folded)
);
CREATE TABLE items (
  id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, path TEXT, text TEXT,
  cells TEXT NOT NULL, sha256 TEXT NOT NULL, gold INTEGER, place INTEGER NOT NULL,
  CONSTRAINT uq_items_name UNIQUE (name), CONSTRAINT uq_items_place UNIQUE (place)
);
CREATE TABLE questions (
  id {serial} PRIMARY KEY, item INTEGER NOT NULL REFERENCES items (id),
  "user" INTEGER NOT NULL REFERENCES users (id), round INTEGER NOT NULL, mode TEXT NOT NULL,
  proposed TEXT NOT NULL, size INTEGER NOT NULL, law TEXT NOT NULL, seed BIGINT NOT NULL,
  gold BOOLEAN NOT NULL, given BIGINT NOT NULL,
  CONSTRAINT uq_questions_item_user_round UNIQUE (item, "user", round)
);
CREATE INDEX ix_questions_user_id ON questions ("user", id);
CREATE TABLE answers (
  number {serial} PRIMARY KEY, id TEXT NOT NULL, "user" INTEGER NOT NULL REFERENCES users (id),
  question INTEGER REFERENCES questions (id), kind TEXT NOT NULL, excluded TEXT NOT NULL,
  which INTEGER, undoes TEXT, late BOOLEAN NOT NULL, status TEXT NOT NULL, took_ms INTEGER,
  sent BIGINT, received BIGINT NOT NULL, content TEXT NOT NULL,
  CONSTRAINT uq_answers_id UNIQUE (id), FOREIGN KEY (undoes) REFERENCES answers (id)
);
CREATE INDEX ix_answers_question ON answers (question);
CREATE INDEX ix_answers_user_number ON answers ("user", number);
CREATE TABLE undone (
  answer INTEGER NOT NULL PRIMARY KEY REFERENCES answers (number),
  "by" INTEGER NOT NULL REFERENCES answers (number)
);
CREATE TABLE slots (
  item INTEGER NOT NULL REFERENCES items (id), round INTEGER NOT NULL, place INTEGER NOT NULL,
  needed BOOLEAN NOT NULL, test BOOLEAN NOT NULL, question INTEGER REFERENCES questions (id),
  holder INTEGER REFERENCES users (id), expires BIGINT,
  answer INTEGER REFERENCES answers (number), PRIMARY KEY (item, round),
  CONSTRAINT uq_slots_holder_item UNIQUE (holder, item),
  CONSTRAINT ck_slots_held CHECK ((question IS NULL) = (holder IS NULL)),
  CONSTRAINT ck_slots_until CHECK ((question IS NULL) = (expires IS NULL)),
  CONSTRAINT ck_slots_asked CHECK (answer IS NULL OR question IS NOT NULL)
);
-- Partial, so that a search for what is NULL uses the index made for it.
CREATE UNIQUE INDEX uq_slots_question ON slots (question) WHERE question IS NOT NULL;
CREATE UNIQUE INDEX uq_slots_answer ON slots (answer) WHERE answer IS NOT NULL;
CREATE INDEX ix_slots_free ON slots (test, round, place) WHERE question IS NULL AND {needed};
CREATE INDEX ix_slots_expires ON slots (expires) WHERE question IS NOT NULL AND answer IS NULL;
CREATE INDEX ix_slots_left ON slots (item) WHERE answer IS NULL AND {needed};
