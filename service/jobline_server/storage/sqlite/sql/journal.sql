-- name: append_rows
-- Adds a row, one a shard or several in order; the trigger `fence` moves the shard rows or undoes
-- the whole statement.
INSERT INTO journal (position, epoch, chain_before, chain, id_ceiling, blob)
VALUES (?, ?, ?, ?, ?, ?);

-- name: raise_ceiling
-- Moves the id ceiling of a shard that has no row in this commit.
UPDATE shard SET id_ceiling = max(id_ceiling, :id_ceiling) WHERE shard = :shard;

-- name: fence
-- What the next row of a shard has to continue.
SELECT epoch, offset, chain FROM shard WHERE shard = :shard;

-- name: read_rows
-- The rows of a shard between two positions, in order.
SELECT position, epoch, chain_before, chain, blob
  FROM journal
 WHERE position > :after AND position <= :last
 ORDER BY position;

-- name: chain_at
-- The chain after one commit, as long as its row is there.
SELECT chain FROM journal WHERE position = :position;

-- name: set_rows_apart
-- Copies the rows of a shard that a break in its journal makes useless.
INSERT INTO set_apart (source, shard, key, version, checksum, recovery_case, blob)
SELECT 'journal', position >> 48, position & 0xFFFFFFFFFFFF, epoch, chain, :recovery_case, blob
  FROM journal
 WHERE position > :after AND position <= :last;

-- name: delete_rows
-- Deletes the rows of a shard between two positions.
DELETE FROM journal WHERE position > :after AND position <= :last;

-- name: cut_shard_row
-- Puts a shard back to where its journal is good.
UPDATE shard SET offset = :offset, chain = :chain WHERE shard = :shard;

-- name: first_position
-- The oldest row of a shard up to its checkpoint.
SELECT min(position) FROM journal WHERE position > :after AND position <= :last;

-- name: slice_end
-- Where a slice of so many rows and bytes ends; the first row always fits. The length is taken
-- innermost, where it stands in the row's header: otherwise every blob would be read and copied.
SELECT max(position)
  FROM (SELECT position,
               sum(bytes) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) - bytes AS before
          FROM (SELECT position, length(blob) AS bytes
                  FROM journal
                 WHERE position > :after AND position <= :last
                 ORDER BY position
                 LIMIT :limit_rows))
 WHERE before < :limit_bytes;
