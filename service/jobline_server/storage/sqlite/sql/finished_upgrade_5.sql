-- From format 4 of finished.db to 5: what operators did. The text is that of finished_schema.sql.

BEGIN IMMEDIATE;

CREATE TABLE operation (
    id TEXT PRIMARY KEY NOT NULL,
    began_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,       -- 0: it is not over
    principal TEXT NOT NULL,
    verb TEXT NOT NULL,
    queue TEXT NOT NULL,
    undoes TEXT NOT NULL,            -- the operation that it undid, else ''
    blob BLOB NOT NULL               -- last, so that looking does not read it
);
-- Lists, the newest first, by what they may be filtered by; and what is deleted next.
CREATE INDEX operation_by_time ON operation (began_ms, id, principal, verb, queue);
-- By which operation another one was undone.
CREATE INDEX operation_undoes ON operation (undoes) WHERE undoes <> '';

PRAGMA user_version = 5;

COMMIT;
