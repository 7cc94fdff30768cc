-- The format of jobline.db. `application_id` is "JBLN"; `user_version` is the number of this
-- format.
--
-- To change it: raise `FORMAT` in bootstrap.py and `user_version` below; write the step from the
-- format before as sql/upgrade_<n>.sql and name it in the `upgrades` of `FORMAT`; keep a file of the
-- old format in tests/storage/ and test that it opens. Blobs carry their own formats (protobuf): a new
-- field or kind needs a new format here only if versions before would lose what it holds. A newer
-- format than ours is refused.

BEGIN IMMEDIATE;

PRAGMA application_id = 0x4A424C4E;
PRAGMA user_version = 4;

CREATE TABLE store (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    shards INTEGER NOT NULL                     -- fixed: a queue's shard is crc32(name) mod shards
);

-- What belongs to this store beside this file: a start without it, or with that of another store, is
-- refused.
CREATE TABLE belongs (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    identity INTEGER NOT NULL,                  -- of this store; finished.db has the same
    promised INTEGER NOT NULL,                  -- 1 once there is a promise file
    ended_syncs INTEGER                         -- of finished.db when it was synced last; NULL: never
);
INSERT INTO belongs (only, identity, promised) VALUES (1, random() & 0x7FFFFFFFFFFFFFFF, 0);

-- The shard row: where a shard stands, and who may write.
CREATE TABLE shard (
    shard INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,             -- raised by each opening; fences older writers
    offset INTEGER NOT NULL DEFAULT 0,            -- of the last commit
    chain INTEGER NOT NULL DEFAULT 0,             -- checksum of all blobs up to it
    id_ceiling INTEGER NOT NULL DEFAULT 1,        -- ids below may be in use; 0 means "none"
    checkpoint_offset INTEGER NOT NULL DEFAULT 0, -- items hold every fact up to here
    checkpoint_chain INTEGER NOT NULL DEFAULT 0,  -- the chain there: where the tail begins
    generation INTEGER NOT NULL DEFAULT 0,        -- of the last finished checkpoint
    checkpoint_checksum INTEGER NOT NULL DEFAULT 0 -- of these three; the journal has the rest
);

-- The journal: one row a commit and shard. A rowid table, since blobs are large: in an index they
-- would crowd the inner pages (measured: 700 against 1,070 commits a second of eight rows of 20
-- KB).
CREATE TABLE journal (
    position INTEGER PRIMARY KEY,   -- shard << 48 | offset: a shard's rows lie together, in order
    epoch INTEGER NOT NULL,         -- under which it was written
    chain_before INTEGER NOT NULL,  -- what it continues
    chain INTEGER NOT NULL,         -- crc32 of blob, begun with chain_before
    id_ceiling INTEGER,             -- moves the shard's, if set: it rides in the same statement
    blob BLOB NOT NULL              -- the facts; last, so that the others need no overflow page
);

-- The fence. One statement inserts a row of each shard, and this moves the shard rows or undoes it
-- all.
CREATE TRIGGER fence BEFORE INSERT ON journal BEGIN
    UPDATE shard
       SET offset = NEW.position & 0xFFFFFFFFFFFF,
           chain = NEW.chain,
           id_ceiling = max(id_ceiling, coalesce(NEW.id_ceiling, 0))
     WHERE shard = NEW.position >> 48
       AND epoch = NEW.epoch
       AND offset = (NEW.position & 0xFFFFFFFFFFFF) - 1
       AND chain = NEW.chain_before;
    SELECT RAISE(ABORT, 'fenced') WHERE changes() = 0;
END;

-- Items: what checkpoints wrote. An item may have a visible version and a staged one.
CREATE TABLE item (
    id INTEGER PRIMARY KEY,       -- rows are appended, which is twice as fast as a clustered key
    shard INTEGER NOT NULL,
    kind INTEGER NOT NULL,        -- ItemKind
    key INTEGER NOT NULL,         -- of 53 bits
    generation INTEGER NOT NULL,  -- of the checkpoint that wrote it; above the shard's: staged
    checksum INTEGER NOT NULL,    -- crc32 of blob, begun with a mix of the columns above
    blob BLOB NOT NULL
);
CREATE UNIQUE INDEX item_place ON item (shard, kind, key, generation);

-- Versions that nobody sees once the shard's generation reaches `due`: replaced, or of an item that
-- ended. Named by place and not by id, because SQLite may give an id twice.
CREATE TABLE superseded (
    shard INTEGER NOT NULL,
    due INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    key INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (shard, due, kind, key, generation)
) WITHOUT ROWID;

-- A new version lists the older ones, so that a truncation finds them without looking at every
-- item.
CREATE TRIGGER supersede BEFORE INSERT ON item BEGIN
    INSERT INTO superseded (shard, due, kind, key, generation)
    SELECT shard, NEW.generation, kind, key, generation
      FROM item
     WHERE shard = NEW.shard AND kind = NEW.kind AND key = NEW.key AND generation < NEW.generation
    ON CONFLICT DO NOTHING;
END;

-- What could not be served: found bad, or given up by accepting a loss. For people to look at.
CREATE TABLE set_apart (
    number INTEGER PRIMARY KEY,
    source TEXT NOT NULL,       -- 'item' or 'journal'
    shard INTEGER NOT NULL,
    kind INTEGER,               -- of an item
    key INTEGER NOT NULL,       -- of an item; of a journal row, its offset
    version INTEGER NOT NULL,   -- an item's generation, a journal row's epoch
    checksum INTEGER NOT NULL,  -- as it stood; of a journal row, its chain
    recovery_case INTEGER,      -- why, for a journal row
    blob BLOB NOT NULL
);

INSERT INTO store (only, shards) VALUES (1, {shards});
WITH RECURSIVE number (shard) AS (
    VALUES (0) UNION ALL SELECT shard + 1 FROM number WHERE shard + 1 < {shards}
)
INSERT INTO shard (shard) SELECT shard FROM number;

COMMIT;
