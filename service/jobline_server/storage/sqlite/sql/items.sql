-- name: shard_row
-- A shard row.
SELECT shard, epoch, offset, chain, id_ceiling, checkpoint_offset, checkpoint_chain, generation
  FROM shard
 WHERE shard = :shard;

-- name: all_shard_rows
-- Every shard row, and the checksum of its checkpoint.
SELECT shard, epoch, offset, chain, id_ceiling, checkpoint_offset, checkpoint_chain, generation,
       checkpoint_checksum
  FROM shard
 ORDER BY shard;

-- name: accept_checkpoint
-- After a loss was accepted: believes the shard row as it stands.
UPDATE shard SET checkpoint_checksum = :checksum WHERE shard = :shard;

-- name: raise_epoch
-- Takes a shard under a new epoch and sets a block of ids aside.
UPDATE shard
   SET epoch = max(epoch + 1, :epoch_floor), id_ceiling = id_ceiling + :id_block
 WHERE shard = :shard;

-- name: accept_promise
-- After a loss was accepted: no epoch and no id that may have been given out is given again.
UPDATE shard
   SET epoch = max(epoch, :epoch), id_ceiling = max(id_ceiling, :id_ceiling)
 WHERE shard = :shard;

-- name: put_items
-- Stages items; the trigger `supersede` lists the versions before.
INSERT INTO item (shard, kind, key, generation, checksum, blob) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (shard, kind, key, generation)
DO UPDATE SET checksum = excluded.checksum, blob = excluded.blob;

-- name: supersede_removed
-- Lists the stored versions of items that ended.
WITH ended (kind, key) AS (VALUES (?, ?))
INSERT INTO superseded (shard, due, kind, key, generation)
SELECT item.shard, staging.generation, item.kind, item.key, item.generation
  FROM ended
  CROSS JOIN (SELECT ? AS shard, ? AS generation) AS staging
  CROSS JOIN item
 WHERE item.shard = staging.shard AND item.kind = ended.kind AND item.key = ended.key
   AND item.generation < staging.generation
ON CONFLICT DO NOTHING;

-- name: unstage_removed
-- Takes back items that ended after this checkpoint staged them.
WITH ended (kind, key) AS (VALUES (?, ?))
DELETE FROM item
 WHERE id IN (SELECT item.id
                FROM ended
                CROSS JOIN (SELECT ? AS shard, ? AS generation) AS staging
                CROSS JOIN item
               WHERE item.shard = staging.shard AND item.kind = ended.kind AND item.key = ended.key
                 AND item.generation = staging.generation);

-- name: finish_checkpoint
-- Makes a generation the visible one.
UPDATE shard
   SET generation = :generation, checkpoint_offset = :offset, checkpoint_chain = :chain,
       checkpoint_checksum = :checksum
 WHERE shard = :shard
   AND epoch = :epoch
   AND generation = :generation - 1
   AND :offset BETWEEN checkpoint_offset AND offset;

-- name: read_items
-- The items of a shard after a place, in order, without what is staged.
SELECT kind, key, generation, checksum, blob
  FROM item
 WHERE shard = :shard AND (kind, key) > (:kind, :key) AND generation <= :generation
 ORDER BY kind, key;

-- name: set_item_apart
-- Copies an item that is not what was written.
INSERT INTO set_apart (source, shard, kind, key, version, checksum, blob)
SELECT 'item', shard, kind, key, generation, checksum, blob
  FROM item
 WHERE shard = :shard AND kind = :kind AND key = :key AND generation = :generation;

-- name: delete_item
-- Deletes one version of an item.
DELETE FROM item WHERE shard = :shard AND kind = :kind AND key = :key AND generation = :generation;

-- name: find_leftovers
-- Items that an unfinished checkpoint staged, after a place; the index alone answers it.
SELECT kind, key
  FROM item INDEXED BY item_place
 WHERE shard = :shard AND (kind, key) > (:kind, :key) AND generation = :generation
 ORDER BY kind, key
 LIMIT :limit_rows;

-- name: delete_leftovers
-- Deletes what an unfinished checkpoint staged between two places.
DELETE FROM item
 WHERE shard = :shard AND generation = :generation
   AND (kind, key) > (:kind, :key) AND (kind, key) <= (:last_kind, :last_key);

-- name: forget_superseded
-- Forgets what an unfinished checkpoint would have superseded.
DELETE FROM superseded WHERE shard = :shard AND due > :generation;

-- name: count_slice
-- How many superseded versions make a slice of so many rows and bytes; the first always fits. The
-- length is taken innermost, where it stands in the row's header: else every blob would be copied.
SELECT count(*)
  FROM (SELECT sum(bytes) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) - bytes AS before
          FROM (SELECT slice.number, coalesce(length(item.blob), 0) AS bytes
                  FROM (SELECT row_number() OVER (ORDER BY due, kind, key, generation) AS number, *
                          FROM superseded
                         WHERE shard = :shard AND due <= :generation
                         ORDER BY due, kind, key, generation
                         LIMIT :limit_rows) AS slice
                  LEFT JOIN item USING (shard, kind, key, generation)))
 WHERE before < :limit_bytes;

-- name: delete_superseded_items
-- Deletes the versions of a slice.
DELETE FROM item
 WHERE id IN (SELECT item.id
                FROM (SELECT shard, kind, key, generation
                        FROM superseded
                       WHERE shard = :shard AND due <= :generation
                       ORDER BY due, kind, key, generation
                       LIMIT :limit_rows)
                JOIN item USING (shard, kind, key, generation));

-- name: delete_superseded
-- Deletes the list of a slice.
DELETE FROM superseded
 WHERE (shard, due, kind, key, generation) IN (
    SELECT shard, due, kind, key, generation
      FROM superseded
     WHERE shard = :shard AND due <= :generation
     ORDER BY due, kind, key, generation
     LIMIT :limit_rows);

-- name: count_superseded
-- How many superseded versions are left, counted no further than a limit.
SELECT count(*)
  FROM (SELECT 1 FROM superseded WHERE shard = :shard AND due <= :generation LIMIT :limit_rows);
