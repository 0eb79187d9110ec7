-- An outcome is found by the number of its decision: decisions rewarded together were mostly made together, so that
-- their places in the index are on one page, where those of their ids are on a page each.
CREATE TABLE outcomes_2 (
    seq INTEGER PRIMARY KEY,
    experiment INTEGER NOT NULL,
    decision_seq INTEGER NOT NULL,
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

INSERT INTO outcomes_2
SELECT o.seq, o.experiment, d.seq, o.decision, o.slot, o.id, o.at, o.kind, o.value, o.trials, o.exposure, o.action,
    o.context, o.earned, o.learn
FROM outcomes AS o JOIN decisions AS d ON d.experiment = o.experiment AND d.id = o.decision

DROP TABLE outcomes

ALTER TABLE outcomes_2 RENAME TO outcomes

CREATE UNIQUE INDEX outcomes_by_decision ON outcomes (decision_seq, slot, id)

-- How often the write-ahead log was begun anew by a commit that is nobody's.
INSERT INTO counters (name, last) VALUES ('begun', 0)
