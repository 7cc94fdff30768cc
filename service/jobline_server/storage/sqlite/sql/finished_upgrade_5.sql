-- From format 4 of finished.db to 5: what operators did. The text is that of finished_schema.sql.

BEGIN IMMEDIATE;

CREATE TABLE operation (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of their commits
    id TEXT NOT NULL UNIQUE,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,       -- 0: it is not over
    principal TEXT NOT NULL,
    verb TEXT NOT NULL,
    queue TEXT NOT NULL,
    undoes TEXT NOT NULL,            -- the operation that it undid, else ''
    blob BLOB NOT NULL               -- last, so that looking does not read it
);
-- All that a list may be filtered by.
CREATE INDEX operation_listed ON operation (number, began_ms, principal, verb, queue);
-- By which operation another one was undone.
CREATE INDEX operation_undoes ON operation (undoes) WHERE undoes <> '';

PRAGMA user_version = 5;

COMMIT;
