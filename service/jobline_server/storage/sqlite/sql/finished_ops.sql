-- name: put_rows
-- Adds runs whose ids are free; the trigger `disjoint` refuses the others.
INSERT INTO ended
    (first_id, count, queue, state, former_state, stale_ms, ended_ms, reason, bytes, run_first,
     run_count, checksum, due_ms, keep_count, name, error_type, error_message, blob, retry_ms,
     delete_after_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_straddled
-- Which of these ids lie within a part and not at its begin.
WITH cut (at) AS (VALUES (?))
SELECT DISTINCT cut.at
  FROM cut
  CROSS JOIN ended
 WHERE ended.first_id = (SELECT max(first_id) FROM ended WHERE first_id < cut.at)
   AND ended.first_id + ended.count > cut.at
 ORDER BY cut.at;

-- name: part_before
-- The part that begins before an id.
SELECT first_id, count, bytes FROM ended WHERE first_id < :at ORDER BY first_id DESC LIMIT 1;

-- name: share_blob
-- Puts the blob of a part where several parts can refer to it.
INSERT INTO body (blob) SELECT blob FROM ended WHERE first_id = :first_id AND body IS NULL;

-- name: refer_to_blob
-- Lets the part refer to it.
UPDATE ended
   SET body = last_insert_rowid(), blob = NULL
 WHERE first_id = :first_id AND body IS NULL;

-- name: shorten_part
-- Leaves a part its first ids.
UPDATE ended SET count = :count, bytes = :bytes WHERE first_id = :first_id;

-- name: add_part
-- Makes the other ids a part of their own.
INSERT INTO ended
    (first_id, count, queue, state, former_state, stale_ms, ended_ms, reason, bytes, run_first,
     run_count, checksum, body, due_ms, keep_count, name, error_type, error_message, blob, retry_ms,
     delete_after_ms, delete_ms)
SELECT :at, :count, queue, state, former_state, stale_ms, ended_ms, reason, :bytes, run_first,
       run_count, checksum, body, due_ms, keep_count, name, error_type, error_message, blob, retry_ms,
       delete_after_ms, delete_ms
  FROM ended
 WHERE first_id = :first_id;

-- name: remove_spans
-- Deletes the parts that begin within spans of ids.
WITH span (low, high) AS (VALUES (?, ?))
DELETE FROM ended
 WHERE first_id IN (SELECT ended.first_id
                      FROM span
                      CROSS JOIN ended
                     WHERE ended.first_id >= span.low AND ended.first_id < span.high);

-- name: mark_spans_stale
-- Makes the parts stale that begin within spans of ids and are not yet.
WITH span (low, high) AS (VALUES (?, ?))
UPDATE ended
   SET former_state = state, state = 9, stale_ms = ?,
       delete_ms = min(coalesce(? + delete_after_ms, ?), ?)
 WHERE state <> 9
   AND first_id IN (SELECT ended.first_id
                      FROM span
                      CROSS JOIN ended
                     WHERE ended.first_id >= span.low AND ended.first_id < span.high);

-- name: remove_queue
-- Deletes a slice of a queue.
DELETE FROM ended
 WHERE first_id IN (SELECT first_id FROM ended WHERE queue = :queue LIMIT :limit_rows);

-- name: note_sync
-- Something to commit.
UPDATE file SET syncs = syncs + 1;

-- name: put_operation
-- An operation, as it begins or as it ends. Journals are read one after the other, so an end may come
-- before its begin.
INSERT INTO operation (id, began_ms, ended_ms, principal, verb, queue, undoes, blob)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET ended_ms = excluded.ended_ms, undoes = excluded.undoes,
                               blob = excluded.blob
 WHERE excluded.ended_ms >= operation.ended_ms;
