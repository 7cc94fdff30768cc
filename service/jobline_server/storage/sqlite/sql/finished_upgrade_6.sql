-- From format 5 of finished.db to 6: how long stale jobs stay. The text is that of finished_schema.sql. What
-- is stale already has no time in its row, and goes after the hour that was the only one.

BEGIN IMMEDIATE;

ALTER TABLE ended ADD COLUMN delete_after_ms INTEGER;
ALTER TABLE ended ADD COLUMN delete_ms INTEGER;

-- What is deleted next.
DROP INDEX ended_stale;
CREATE INDEX ended_stale ON ended (coalesce(delete_ms, stale_ms + 3600000)) WHERE state = 9;

PRAGMA user_version = 6;

COMMIT;
