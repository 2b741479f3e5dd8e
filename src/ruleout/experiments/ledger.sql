-- The tables of a ledger, schema 1: each spec is a task, and has at most one record.
CREATE TABLE tasks (
    key TEXT PRIMARY KEY, spec TEXT NOT NULL, added TEXT NOT NULL DEFAULT current_timestamp
) STRICT;
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL REFERENCES tasks, error TEXT NOT NULL,
    forgiven INTEGER NOT NULL DEFAULT 0, at TEXT NOT NULL DEFAULT current_timestamp
) STRICT;
CREATE TABLE records (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE REFERENCES tasks,
    configurations TEXT NOT NULL, epochs BLOB NOT NULL, about TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT current_timestamp
) STRICT;
CREATE TABLE trials (
    record INTEGER NOT NULL REFERENCES records, trial INTEGER NOT NULL, accuracy REAL,
    chosen INTEGER NOT NULL, PRIMARY KEY (record, trial)
) STRICT, WITHOUT ROWID;
CREATE TABLE configurations (
    record INTEGER NOT NULL REFERENCES records, trial INTEGER NOT NULL,
    configuration INTEGER NOT NULL, estimate REAL, error REAL, test REAL,
    PRIMARY KEY (record, trial, configuration)
) STRICT, WITHOUT ROWID;
CREATE TABLE curves (
    record INTEGER NOT NULL REFERENCES records, name TEXT NOT NULL, trial INTEGER NOT NULL,
    points BLOB NOT NULL, PRIMARY KEY (record, name, trial)
) STRICT;
