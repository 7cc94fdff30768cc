-- From format 1 of jobline.db to 2: the store notes what belongs to it. The text of the table is that
-- of schema.sql.

BEGIN IMMEDIATE;

CREATE TABLE belongs (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    identity INTEGER NOT NULL,                  -- of this store; finished.db has the same
    promised INTEGER NOT NULL,                  -- 1 once there is a promise file
    ended_syncs INTEGER                         -- of finished.db when it was synced last; NULL: never
);
INSERT INTO belongs (only, identity, promised) VALUES (1, random() & 0x7FFFFFFFFFFFFFFF, 0);

PRAGMA user_version = 2;

COMMIT;
