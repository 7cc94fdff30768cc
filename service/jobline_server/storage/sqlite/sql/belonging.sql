-- name: note
-- What the store says belongs to it.
SELECT identity, promised, ended_syncs FROM belongs;

-- name: note_promise
-- From now on a promise file must be there.
UPDATE belongs SET promised = 1 WHERE promised = 0;

-- name: note_ended
-- How often the finished file had been synced when everything up to here was in it.
UPDATE belongs SET ended_syncs = :syncs;

-- name: mark
-- Whose a finished file is, and how often it was synced.
SELECT belongs.identity, file.syncs FROM belongs CROSS JOIN file;

-- name: belong_to
-- Makes the finished file that of a store.
UPDATE belongs SET identity = :identity;
