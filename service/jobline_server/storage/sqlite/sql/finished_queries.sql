-- name: part_of
-- The part that an id would be in.
SELECT ended.first_id, ended.count, queue, state, former_state, stale_ms, ended_ms, reason,
       run_first, run_count, checksum, due_ms, keep_count, name, error_type, error_message,
       coalesce(ended.blob, body.blob), ended.retry_ms,
       delete_after_ms,
       CASE WHEN state = 9 THEN coalesce(delete_ms, stale_ms + 3600000) ELSE 0 END
  FROM ended
  LEFT JOIN body ON body.number = ended.body
 WHERE first_id = (SELECT max(first_id) FROM ended WHERE first_id <= :job_id);

-- name: begin_of
-- Where the part begins that an id would be in, and its last id.
SELECT first_id, first_id + count - 1
  FROM ended
 WHERE first_id <= :job_id
 ORDER BY first_id DESC
 LIMIT 1;

-- name: window_end
-- Where a walk over so many parts ends: its last part, and that part's last id.
SELECT first_id, first_id + count - 1
  FROM ended {index}
 WHERE {source} AND first_id >= :start
 ORDER BY first_id
 LIMIT 1 OFFSET :parts - 1;

-- name: search_end
-- The same for a walk that searches blobs: it ends earlier where they have so many bytes. A part may be a
-- small one of a large blob. Rows come one by one, so those behind the end are not read.
SELECT first_id, last_id
  FROM (SELECT first_id, first_id + count - 1 AS last_id, row_number() OVER by_id AS number,
               sum(bytes * run_count / count) OVER by_id AS total
          FROM ended {index}
         WHERE {source} AND first_id >= :start
        WINDOW by_id AS (ORDER BY first_id ROWS UNBOUNDED PRECEDING))
 WHERE number >= :parts OR total >= :bytes
 LIMIT 1;

-- name: walk
-- Parts of one source by id, those that meet the conditions; the one about blobs comes last, as it reads them.
SELECT ended.first_id, ended.count, queue, state, former_state, stale_ms, ended_ms, reason,
       run_first, run_count, checksum, due_ms, keep_count, name, error_type, error_message,
       coalesce(ended.blob, body.blob), ended.retry_ms,
       delete_after_ms,
       CASE WHEN state = 9 THEN coalesce(delete_ms, stale_ms + 3600000) ELSE 0 END
  FROM ended {index}
  LEFT JOIN body ON body.number = ended.body
 WHERE {source} AND first_id BETWEEN :start AND :end
   AND (:reasons IS NULL OR reason IN (SELECT value FROM json_each(:reasons)))
   AND (:name IS NULL OR name = :name)
   AND (:error_type = '' OR error_type = :error_type)
   AND (:error_contains = '' OR instr(error_message, :error_contains) > 0)
   AND (:ended_after_ms IS NULL OR ended_ms >= :ended_after_ms)
   AND (:ended_before_ms IS NULL OR ended_ms < :ended_before_ms)
   {search}
 ORDER BY first_id;

-- name: has_part
-- Whether a blob has these bytes.
instr(coalesce(ended.blob, body.blob), :{part}) > 0;

-- name: counts
-- Jobs by queue and state.
SELECT queue, state, sum(jobs) FROM tally GROUP BY queue, state;

-- name: dead_statistics
-- What dead jobs have in common, with the moments of the oldest and newest: two look-ups a group.
SELECT queue, name, reason, error_type, sum(jobs) AS total,
       (SELECT min(ended_ms) FROM ended
         WHERE state = 6 AND queue = tally.queue AND name = tally.name
           AND reason = tally.reason AND error_type = tally.error_type),
       (SELECT max(ended_ms) FROM ended
         WHERE state = 6 AND queue = tally.queue AND name = tally.name
           AND reason = tally.reason AND error_type = tally.error_type)
  FROM tally
 WHERE state = 6 AND (:queue = '' OR queue = :queue)
 GROUP BY queue, name, reason, error_type
 ORDER BY total DESC, queue, name, reason, error_type;
