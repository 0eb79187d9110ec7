CREATE TABLE counters (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID

INSERT INTO counters (name, last) VALUES ('records', 0), ('decisions', 0)

CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,
    created REAL NOT NULL
) STRICT

CREATE TABLE models (
    experiment INTEGER NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    from_seq INTEGER NOT NULL,
    PRIMARY KEY (experiment, version)
) STRICT, WITHOUT ROWID

CREATE TABLE files (digest TEXT NOT NULL UNIQUE, data BLOB NOT NULL) STRICT

CREATE TABLE decisions (
    seq INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    open INTEGER NOT NULL,
    active REAL,
    closes REAL,
    mode TEXT NOT NULL,
    learning TEXT NOT NULL,
    model_version INTEGER NOT NULL,
    learned_xid INTEGER NOT NULL,
    learned_seq INTEGER NOT NULL,
    request_digest BLOB NOT NULL,
    propensity TEXT,
    actions TEXT NOT NULL,
    context TEXT,
    offered TEXT
) STRICT

CREATE UNIQUE INDEX decisions_by_id ON decisions (experiment, id)

CREATE INDEX decisions_due ON decisions (experiment, closes) WHERE open = 1

CREATE TABLE outcomes (
    seq INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL,
    decision TEXT NOT NULL,
    slot INTEGER NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    value REAL NOT NULL,
    trials REAL,
    exposure REAL,
    action ANY NOT NULL,
    context TEXT,
    earned REAL NOT NULL,
    learn INTEGER NOT NULL
) STRICT

CREATE UNIQUE INDEX outcomes_by_id ON outcomes (experiment, decision, slot, id)

CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    "by" TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    experiment TEXT,
    rate REAL,
    created REAL NOT NULL,
    revoked REAL
) STRICT, WITHOUT ROWID

CREATE TABLE snapshots (
    experiment INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL,
    created REAL NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (experiment, seq)
) STRICT, WITHOUT ROWID

CREATE TABLE quarantine (seq INTEGER PRIMARY KEY, why TEXT NOT NULL) STRICT
