-- The levels of the factors of a decision, such as the store where it was made; an outcome has them for the replay.
ALTER TABLE decisions ADD COLUMN factors text

ALTER TABLE outcomes ADD COLUMN factors text
