-- name: find
-- A page of operations, the newest first: found in the index, then read.
SELECT operation.number, operation.blob,
       coalesce((SELECT undo.id
                   FROM operation AS undo
                  WHERE undo.undoes = operation.id AND undo.undoes <> ''
                  ORDER BY undo.number LIMIT 1), '')
  FROM operation
 WHERE number IN (SELECT number
                    FROM operation INDEXED BY operation_listed
                   WHERE number < :before
                     AND began_ms >= :after_ms AND began_ms < :before_ms
                     AND (:principal = '' OR principal = :principal)
                     AND (:verb = '' OR verb = :verb)
                     AND (:queue = '' OR queue = :queue)
                   ORDER BY number DESC
                   LIMIT :limit)
 ORDER BY number DESC;

-- name: find_one
-- One operation.
SELECT operation.number, operation.blob,
       coalesce((SELECT undo.id
                   FROM operation AS undo
                  WHERE undo.undoes = operation.id AND undo.undoes <> ''
                  ORDER BY undo.number LIMIT 1), '')
  FROM operation
 WHERE id = :id AND number < :before
   AND began_ms >= :after_ms AND began_ms < :before_ms
   AND (:principal = '' OR principal = :principal)
   AND (:verb = '' OR verb = :verb)
   AND (:queue = '' OR queue = :queue);

-- name: delete_before
-- Those of the oldest operations that began before a time.
DELETE FROM operation
 WHERE number IN (SELECT number
                    FROM (SELECT number, began_ms FROM operation ORDER BY number LIMIT :limit)
                   WHERE began_ms < :before_ms);

-- name: delete_oldest
-- Some of the oldest operations, down to a number of them.
DELETE FROM operation
 WHERE number IN (SELECT number FROM operation ORDER BY number
                   LIMIT max(min((SELECT count(*) FROM operation) - :kept_max, :limit), 0));
