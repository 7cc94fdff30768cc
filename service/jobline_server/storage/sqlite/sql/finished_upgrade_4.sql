-- From format 3 of finished.db to 4: what happened in each queue, minute by minute. The text is that of
-- finished_schema.sql.

BEGIN IMMEDIATE;

CREATE TABLE minute (
    queue TEXT NOT NULL,
    minute INTEGER NOT NULL,         -- since 1970
    pushed INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    waited_p50_ms INTEGER,           -- NULL: no job was handed out
    waited_p95_ms INTEGER,
    PRIMARY KEY (queue, minute)
) WITHOUT ROWID;
-- What is deleted next.
CREATE INDEX minute_by_time ON minute (minute);

PRAGMA user_version = 4;

COMMIT;
