-- An outcome is found by the number of its decision: decisions rewarded together were mostly made together, so that
-- their places in the index are on one page, where those of their ids are on a page each.
ALTER TABLE outcomes ADD COLUMN decision_seq bigint

UPDATE outcomes AS o SET decision_seq = d.seq FROM decisions AS d
WHERE d.experiment = o.experiment AND d.id = o.decision

ALTER TABLE outcomes ALTER COLUMN decision_seq SET NOT NULL

DROP INDEX outcomes_by_id

CREATE UNIQUE INDEX outcomes_by_decision ON outcomes (decision_seq, slot, id)
