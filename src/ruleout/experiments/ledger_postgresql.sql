-- The tables of a ledger, schema 1, as in ledger.sql, in a schema of their own.
CREATE SCHEMA IF NOT EXISTS ruleout_ledger;
CREATE TABLE tasks (
    key TEXT PRIMARY KEY, spec TEXT NOT NULL, added TEXT NOT NULL DEFAULT current_timestamp,
    rowid BIGINT GENERATED ALWAYS AS IDENTITY
);
CREATE TABLE failures (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL REFERENCES tasks,
    error TEXT NOT NULL, forgiven INTEGER NOT NULL DEFAULT 0,
    at TEXT NOT NULL DEFAULT current_timestamp
);
CREATE TABLE records (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT NOT NULL UNIQUE REFERENCES tasks,
    configurations TEXT NOT NULL, epochs BYTEA NOT NULL, about TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT current_timestamp
);
CREATE TABLE trials (
    record BIGINT NOT NULL REFERENCES records, trial INTEGER NOT NULL, accuracy DOUBLE PRECISION,
    chosen INTEGER NOT NULL, PRIMARY KEY (record, trial)
);
CREATE TABLE configurations (
    record BIGINT NOT NULL REFERENCES records, trial INTEGER NOT NULL,
    configuration INTEGER NOT NULL, estimate DOUBLE PRECISION, error DOUBLE PRECISION,
    test DOUBLE PRECISION, PRIMARY KEY (record, trial, configuration)
);
CREATE TABLE curves (
    record BIGINT NOT NULL REFERENCES records, name TEXT NOT NULL, trial INTEGER NOT NULL,
    points BYTEA NOT NULL, PRIMARY KEY (record, name, trial)
);
COMMENT ON SCHEMA ruleout_ledger IS '1';
