-- From format 1 of finished.db to 2: the file says whose it is. The text of the table is that of
-- finished_schema.sql.

BEGIN IMMEDIATE;

CREATE TABLE belongs (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    identity INTEGER                            -- of the store that it belongs to; NULL: not known yet
);
INSERT INTO belongs (only, identity) VALUES (1, NULL);

PRAGMA user_version = 2;

COMMIT;
