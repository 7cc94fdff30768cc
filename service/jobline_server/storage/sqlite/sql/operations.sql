-- name: find
-- A page of operations, the newest first: found in the index, then read.
SELECT operation.id, operation.began_ms, operation.blob,
       coalesce((SELECT undo.id
                   FROM operation AS undo
                  WHERE undo.undoes = operation.id AND undo.undoes <> ''
                  ORDER BY undo.ended_ms LIMIT 1), '')
  FROM operation
 WHERE (began_ms, id) < (:before_key, :before_id)
   AND began_ms >= :after_ms AND began_ms < :before_ms
   AND (:principal = '' OR principal = :principal)
   AND (:verb = '' OR verb = :verb)
   AND (:queue = '' OR queue = :queue)
 ORDER BY began_ms DESC, id DESC
 LIMIT :limit;

-- name: find_one
-- One operation.
SELECT operation.id, operation.began_ms, operation.blob,
       coalesce((SELECT undo.id
                   FROM operation AS undo
                  WHERE undo.undoes = operation.id AND undo.undoes <> ''
                  ORDER BY undo.ended_ms LIMIT 1), '')
  FROM operation
 WHERE id = :id
   AND began_ms >= :after_ms AND began_ms < :before_ms
   AND (began_ms, id) < (:before_key, :before_id)
   AND (:principal = '' OR principal = :principal)
   AND (:verb = '' OR verb = :verb)
   AND (:queue = '' OR queue = :queue);

-- name: delete_before
-- Some of the operations that began before a time.
DELETE FROM operation
 WHERE id IN (SELECT id FROM operation WHERE began_ms < :before_ms ORDER BY began_ms, id LIMIT :limit);

-- name: delete_oldest
-- Some of the oldest operations, down to a number of them.
DELETE FROM operation
 WHERE id IN (SELECT id FROM operation ORDER BY began_ms, id
               LIMIT max(min((SELECT count(*) FROM operation) - :kept_max, :limit), 0));
