-- name: add
-- A minute of a queue; one that is there already is replaced.
INSERT OR REPLACE INTO minute
       (queue, minute, pushed, completed, failed, dead, waited_p50_ms, waited_p95_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: find
-- The minutes of a queue, the earliest first.
SELECT queue, minute, pushed, completed, failed, dead, waited_p50_ms, waited_p95_ms
  FROM minute
 WHERE queue = :queue AND minute BETWEEN :first AND :last
 ORDER BY minute
 LIMIT :limit;

-- name: delete_before
-- Some of the minutes before another one.
DELETE FROM minute
 WHERE (queue, minute) IN
       (SELECT queue, minute FROM minute WHERE minute < :minute LIMIT :limit);
