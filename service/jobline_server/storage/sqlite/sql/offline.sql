-- What is read of files that no server has open. Rows come in the order in which they lie in the file.

-- name: every_item
-- Every version of every item, those included that nobody sees.
SELECT shard, kind, key, generation, checksum, blob FROM item ORDER BY id;

-- name: is_superseded
-- Whether a version has been replaced, or its item has ended.
SELECT 1
  FROM superseded
 WHERE shard = :shard AND kind = :kind AND key = :key AND generation = :generation
   AND due <= (SELECT generation FROM shard WHERE shard = :shard);

-- name: count_items
-- How many versions of items there are.
SELECT count(*) FROM item;

-- name: items_by_kind
-- Versions of items that checkpoints have finished, and their bytes; nobody sees the replaced ones.
SELECT item.shard, item.kind, count(*), coalesce(sum(length(item.blob)), 0)
  FROM item
  JOIN shard ON shard.shard = item.shard
 WHERE item.generation <= shard.generation
 GROUP BY item.shard, item.kind;

-- name: count_superseded
-- Versions that were replaced and are not deleted yet, by shard and kind.
SELECT superseded.shard, kind, count(*)
  FROM superseded
  JOIN shard ON shard.shard = superseded.shard
 WHERE due <= shard.generation
 GROUP BY superseded.shard, kind;

-- name: journal_size
-- Rows and bytes of a journal between two positions.
SELECT count(*), coalesce(sum(length(blob)), 0)
  FROM journal
 WHERE position > :after AND position <= :last;

-- name: journal_rows
-- The rows of a shard, in order, those of the last checkpoint included until they are deleted.
SELECT position, epoch, chain_before, chain, blob
  FROM journal
 WHERE position > :after AND position <= :last
 ORDER BY position;

-- name: set_apart
-- What could not be served, by where it comes from.
SELECT source, shard, kind, key, version, recovery_case, length(blob)
  FROM set_apart
 ORDER BY number;

-- name: every_part
-- Every part of ended jobs, with the columns that `row_of` of ended_queries.py takes.
SELECT ended.first_id, ended.count, queue, state, former_state, stale_ms, ended_ms, reason,
       run_first, run_count, checksum, due_ms, keep_count, name, error_type, error_message,
       coalesce(ended.blob, body.blob), ended.retry_ms,
       delete_after_ms, coalesce(delete_ms, 0)
  FROM ended
  LEFT JOIN body ON body.number = ended.body
 ORDER BY first_id;

-- name: count_parts
-- How many parts of ended jobs there are.
SELECT count(*) FROM ended;

-- name: every_tallied
-- Every part of ended jobs: the group that it is counted in, its jobs and bytes. Not grouped here:
-- SQLite would sort all of them in memory.
SELECT queue, state, name, reason, error_type, due_ms IS NOT NULL, count, bytes FROM ended;

-- name: tally
-- Groups of ended jobs with what is counted of them.
SELECT queue, state, name, reason, error_type, own_age, jobs, bytes FROM tally;

-- name: ended_by_queue
-- Ended jobs by queue and state.
SELECT queue, state, sum(jobs), sum(bytes)
  FROM tally
 GROUP BY queue, state
 ORDER BY queue, state;

-- name: count_operations
-- What operators did.
SELECT count(*) FROM operation;

-- name: highest_ceiling
-- The most ids that a shard may have given out.
SELECT coalesce(max(id_ceiling), 0) FROM shard;

-- name: raise_all
-- A restored backup: no epoch and no id is given out that was given out after it was made.
UPDATE shard
   SET epoch = max(epoch + 1, :epoch),
       id_ceiling = id_ceiling + min(:wanted, max((:ids - id_ceiling) / :share, 0));
