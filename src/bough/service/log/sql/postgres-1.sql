-- Positions count transactions; see `restored` in postgres_connections.py for what the clock is shifted by.
CREATE TABLE clock (one boolean PRIMARY KEY DEFAULT true CHECK (one), shift bigint NOT NULL)

INSERT INTO clock (shift) VALUES (0)

CREATE SEQUENCE record_numbers

CREATE SEQUENCE decision_numbers

CREATE TABLE experiments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    config text NOT NULL,
    created double precision NOT NULL
)

CREATE TABLE models (
    experiment bigint NOT NULL,
    version bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    from_seq bigint NOT NULL,
    PRIMARY KEY (experiment, version)
)

CREATE TABLE files (digest text COLLATE "C" PRIMARY KEY, data bytea NOT NULL)

-- Files and snapshots are compressed already.
ALTER TABLE files ALTER COLUMN data SET STORAGE EXTERNAL

-- JSON is kept as text: jsonb refuses NUL in strings, which names and contexts may have.
CREATE TABLE decisions (
    xid bigint NOT NULL,
    seq bigint NOT NULL,
    experiment bigint NOT NULL,
    at double precision NOT NULL,
    active double precision,
    closes double precision,
    model_version bigint NOT NULL,
    learned_xid bigint NOT NULL,
    learned_seq bigint NOT NULL,
    open boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    mode text COLLATE "C" NOT NULL,
    learning text COLLATE "C" NOT NULL,
    request_digest bytea NOT NULL,
    propensity text,
    actions text NOT NULL,
    context text,
    offered text,
    PRIMARY KEY (id, experiment)
)

CREATE INDEX decisions_in_order ON decisions (experiment, xid, seq)

CREATE INDEX decisions_due ON decisions (experiment, closes, seq) WHERE open

CREATE INDEX decisions_without_propensity ON decisions (experiment, learned_xid, learned_seq, seq)
WHERE propensity IS NULL

CREATE INDEX decisions_by_age ON decisions (experiment, at, seq) WHERE context IS NULL

CREATE INDEX decisions_with_context_by_age ON decisions (experiment, at, seq) WHERE context IS NOT NULL

CREATE TABLE outcomes (
    xid bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('record_numbers'),
    experiment bigint NOT NULL,
    at double precision NOT NULL,
    value double precision NOT NULL,
    trials double precision,
    exposure double precision,
    earned double precision NOT NULL,
    slot integer NOT NULL,
    learn boolean NOT NULL,
    decision text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    action text NOT NULL,
    context text,
    PRIMARY KEY (xid, seq)
)

CREATE UNIQUE INDEX outcomes_by_id ON outcomes (experiment, decision, slot, id)

CREATE TABLE changes (
    xid bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('record_numbers'),
    experiment bigint NOT NULL,
    at double precision NOT NULL,
    kind text COLLATE "C" NOT NULL,
    "by" text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (xid, seq)
)

CREATE TABLE keys (
    id text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL,
    scopes text NOT NULL,
    experiment text COLLATE "C",
    rate double precision,
    created double precision NOT NULL,
    revoked double precision
)

CREATE TABLE snapshots (
    experiment bigint NOT NULL,
    xid bigint NOT NULL,
    seq bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    created double precision NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (experiment, xid, seq)
)

ALTER TABLE snapshots ALTER COLUMN data SET STORAGE EXTERNAL

CREATE TABLE quarantine (xid bigint NOT NULL, seq bigint NOT NULL, why text NOT NULL, PRIMARY KEY (xid, seq))
