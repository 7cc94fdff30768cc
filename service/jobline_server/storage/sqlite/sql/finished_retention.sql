-- name: kept
-- Jobs and bytes of one queue and state, and how many of the jobs have no age of their own.
SELECT coalesce(sum(jobs), 0), coalesce(sum(bytes), 0),
       coalesce(sum(jobs) FILTER (WHERE own_age = 0), 0)
  FROM tally
 WHERE queue = :queue AND state = :state;

-- name: oldest_by_age
-- The oldest parts of a queue and state that have no age of their own.
SELECT first_id, count
  FROM ended INDEXED BY ended_by_age
 WHERE queue = :queue AND state = :state AND due_ms IS NULL AND ended_ms < :ended_before_ms
 ORDER BY ended_ms, first_id
 LIMIT :limit;

-- name: oldest_ms
-- When the oldest part of a queue and state ended that has no age of its own.
SELECT ended_ms
  FROM ended INDEXED BY ended_by_age
 WHERE queue = :queue AND state = :state AND due_ms IS NULL
 ORDER BY ended_ms
 LIMIT 1;

-- name: oldest
-- The oldest parts of a queue and state: two indices, merged.
SELECT first_id, count, bytes, ended_ms
  FROM ended INDEXED BY ended_by_age
 WHERE queue = :queue AND state = :state AND due_ms IS NULL
 UNION ALL
SELECT first_id, count, bytes, ended_ms
  FROM ended INDEXED BY ended_by_age_own
 WHERE queue = :queue AND state = :state AND due_ms IS NOT NULL
 ORDER BY ended_ms, first_id
 LIMIT :limit;

-- name: due
-- The parts whose own age is over, those that waited for longest first.
SELECT queue, state, first_id, count
  FROM ended INDEXED BY ended_due
 WHERE state <> 9 AND due_ms <= :now_ms
 ORDER BY due_ms, first_id
 LIMIT :limit;

-- name: next_own_count
-- The last queue, state and count of jobs' own, in that order, before another.
SELECT queue, state, keep_count
  FROM ended INDEXED BY ended_counted
 WHERE keep_count IS NOT NULL AND state <> 9
   AND (queue, state, keep_count) < (:queue, :state, :keep_count)
 ORDER BY queue DESC, state DESC, keep_count DESC
 LIMIT 1;

-- name: oldest_counted
-- The oldest parts of a queue and state with one count of their own.
SELECT first_id, count, ended_ms
  FROM ended INDEXED BY ended_counted
 WHERE queue = :queue AND state = :state AND state <> 9 AND keep_count = :keep_count
 ORDER BY ended_ms, first_id
 LIMIT :limit;

-- name: jobs_beside
-- How many jobs of a queue and state lie on one side of a part; it may stop at so many parts.
SELECT coalesce(sum(count), 0)
  FROM (SELECT count
          FROM ended INDEXED BY ended_by_age
         WHERE queue = :queue AND state = :state AND due_ms IS NULL
           AND (ended_ms, first_id) {side} (:ended_ms, :first_id)
         UNION ALL
        SELECT count
          FROM ended INDEXED BY ended_by_age_own
         WHERE queue = :queue AND state = :state AND due_ms IS NOT NULL
           AND (ended_ms, first_id) {side} (:ended_ms, :first_id)
         LIMIT :enough);

-- name: stalest
-- The parts that have been stale for longest.
SELECT queue, first_id, count
  FROM ended INDEXED BY ended_stale
 WHERE state = 9 AND stale_ms < :stale_before_ms
 ORDER BY stale_ms, first_id
 LIMIT :limit;
