-- From format 2 of finished.db to 3: dead jobs that are put back by themselves. The text of column and
-- index is that of finished_schema.sql.

BEGIN IMMEDIATE;

ALTER TABLE ended ADD COLUMN retry_ms INTEGER;

CREATE INDEX ended_retry ON ended (queue, retry_ms) WHERE state = 6 AND retry_ms IS NOT NULL;

PRAGMA user_version = 3;

COMMIT;
