-- name: totals
-- Jobs and bytes of one queue and state, and how many of the jobs have no age of their own.
SELECT coalesce(sum(jobs), 0), coalesce(sum(bytes), 0),
       coalesce(sum(jobs) FILTER (WHERE own_age = 0), 0)
  FROM tally
 WHERE queue = :queue AND state = :state;

-- name: ended
-- Parts of a queue and state by when they ended: two indices, merged.
SELECT queue, state, first_id, count, ended_ms, bytes
  FROM ended INDEXED BY ended_by_age
 WHERE queue = :queue AND state = :state AND due_ms IS NULL
   AND (ended_ms, first_id) > (:after_ms, :after_id)
   AND (ended_ms, first_id) <= (:until_ms, :until_id)
 UNION ALL
SELECT queue, state, first_id, count, ended_ms, bytes
  FROM ended INDEXED BY ended_by_age_own
 WHERE queue = :queue AND state = :state AND due_ms IS NOT NULL
   AND (ended_ms, first_id) > (:after_ms, :after_id)
   AND (ended_ms, first_id) <= (:until_ms, :until_id)
 {order_by_ended_ms}
 LIMIT :limit;

-- name: ended_by_queue_age
-- Parts of a queue and state that have no age of their own, by when they ended.
SELECT queue, state, first_id, count, ended_ms, bytes
  FROM ended INDEXED BY ended_by_age
 WHERE queue = :queue AND state = :state AND due_ms IS NULL
   AND (ended_ms, first_id) > (:after_ms, :after_id)
   AND (ended_ms, first_id) <= (:until_ms, :until_id)
 ORDER BY ended_ms, first_id
 LIMIT :limit;

-- name: ended_by_count
-- Parts of a queue and state with one count of their own, by when they ended.
SELECT queue, state, first_id, count, ended_ms, bytes
  FROM ended INDEXED BY ended_counted
 WHERE queue = :queue AND state = :state AND state <> 9 AND keep_count = :keep_count
   AND (ended_ms, first_id) > (:after_ms, :after_id)
   AND (ended_ms, first_id) <= (:until_ms, :until_id)
 ORDER BY ended_ms, first_id
 LIMIT :limit;

-- name: due
-- Parts with an age of their own, by when it ends.
SELECT queue, state, first_id, count, due_ms, bytes
  FROM ended INDEXED BY ended_due
 WHERE state <> 9 AND due_ms IS NOT NULL
   AND (due_ms, first_id) > (:after_ms, :after_id)
   AND (due_ms, first_id) <= (:until_ms, :until_id)
 ORDER BY due_ms, first_id
 LIMIT :limit;

-- name: retry
-- Parts of a queue that are put back by themselves, by when.
SELECT queue, state, first_id, count, retry_ms, bytes
  FROM ended INDEXED BY ended_retry
 WHERE queue = :queue AND state = 6 AND retry_ms IS NOT NULL
   AND (retry_ms, first_id) > (:after_ms, :after_id)
   AND (retry_ms, first_id) <= (:until_ms, :until_id)
 ORDER BY retry_ms, first_id
 LIMIT :limit;

-- name: stale
-- Parts that are stale, by when they are deleted: the expression is that of the index, of which pairs
-- alone would have SQLite walk all.
SELECT queue, state, first_id, count, coalesce(delete_ms, stale_ms + 3600000), bytes
  FROM ended INDEXED BY ended_stale
 WHERE state = 9
   AND coalesce(delete_ms, stale_ms + 3600000) BETWEEN :after_ms AND :until_ms
   AND (coalesce(delete_ms, stale_ms + 3600000), first_id) > (:after_ms, :after_id)
   AND (coalesce(delete_ms, stale_ms + 3600000), first_id) <= (:until_ms, :until_id)
 ORDER BY coalesce(delete_ms, stale_ms + 3600000), first_id
 LIMIT :limit;

-- name: count
-- Jobs in the parts of one of the scans above.
SELECT coalesce(sum(count), 0) FROM ({scan});

-- name: next_own_count
-- The last queue, state and count of jobs' own, in that order, before another.
SELECT queue, state, keep_count
  FROM ended INDEXED BY ended_counted
 WHERE keep_count IS NOT NULL AND state <> 9
   AND (queue, state, keep_count) < (:queue, :state, :keep_count)
 ORDER BY queue DESC, state DESC, keep_count DESC
 LIMIT 1;
