-- The format of finished.db. `application_id` is "JBLF"; `user_version` is the number of this
-- format. To change it, do as schema.sql says. States are numbers of JobState: 5 COMPLETED, 6 DEAD,
-- 9 STALE.

BEGIN IMMEDIATE;

PRAGMA application_id = 0x4A424C46;
PRAGMA user_version = 6;

CREATE TABLE file (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    syncs INTEGER NOT NULL DEFAULT 0            -- changed to have something to commit with an fsync
);
INSERT INTO file (only) VALUES (1);

-- Which store this file belongs to.
CREATE TABLE belongs (
    only INTEGER PRIMARY KEY CHECK (only = 1),  -- one row
    identity INTEGER                            -- of the store that it belongs to; NULL: not known yet
);
INSERT INTO belongs (only, identity) VALUES (1, NULL);

-- Parts of runs that ended alike. No two parts share an id, so the part of an id is the last one
-- that begins at or before it. `retry_ms` is when a dead job is put back by itself, NULL if it is not;
-- `delete_after_ms` how long they are stale before they are deleted, NULL: as their queue says; `delete_ms`
-- when stale ones are deleted, NULL: an hour after `stale_ms`, as it was in older formats. These stand where
-- ALTER TABLE puts them in files of those.
CREATE TABLE ended (
    first_id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL CHECK (count > 0),  -- ids first_id … first_id + count - 1
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    former_state INTEGER NOT NULL,   -- before it became stale, else 0
    stale_ms INTEGER NOT NULL,       -- since when it is, else 0
    ended_ms INTEGER NOT NULL,
    reason INTEGER NOT NULL,
    bytes INTEGER NOT NULL,          -- its share of the blob, for retention by size
    run_first INTEGER NOT NULL,      -- the run as it was written: what the blob begins with
    run_count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,       -- of all that the run was written with
    body INTEGER,                    -- where the blob is, once the run has several parts
    due_ms INTEGER,                  -- when their own age makes them stale; NULL: the queue's does
    keep_count INTEGER,              -- how many newer ones they are kept beside; NULL: not theirs
    name TEXT NOT NULL,
    error_type TEXT NOT NULL,        -- these three to look for
    error_message TEXT NOT NULL,
    blob BLOB                        -- last, so that looking does not read it
, retry_ms INTEGER, delete_after_ms INTEGER, delete_ms INTEGER);

-- Blobs of runs that came apart.
CREATE TABLE body (
    number INTEGER PRIMARY KEY,
    blob BLOB NOT NULL
);

-- The oldest of a queue and state, for retention: those that the queue's age holds for, and those
-- that have one of their own. Every part is in one of the two.
CREATE INDEX ended_by_age ON ended (queue, state, ended_ms) WHERE due_ms IS NULL;
CREATE INDEX ended_by_age_own ON ended (queue, state, ended_ms) WHERE due_ms IS NOT NULL;
-- What becomes stale next by an age of its own.
CREATE INDEX ended_due ON ended (due_ms) WHERE due_ms IS NOT NULL AND state <> 9;
-- The oldest of those that say themselves how many newer ones are enough.
CREATE INDEX ended_counted ON ended (queue, state, keep_count, ended_ms)
 WHERE keep_count IS NOT NULL AND state <> 9;
-- What is put back next in a queue.
CREATE INDEX ended_retry ON ended (queue, retry_ms) WHERE state = 6 AND retry_ms IS NOT NULL;
-- Lists of a queue by state and id (the rowid is the last column of every index).
CREATE INDEX ended_by_id ON ended (queue, state);
-- Lists of all queues by state; COMPLETED is most of the table, which is in order of id itself.
CREATE INDEX ended_rare ON ended (state) WHERE state <> 5;
-- What is deleted next.
CREATE INDEX ended_stale ON ended (coalesce(delete_ms, stale_ms + 3600000)) WHERE state = 9;
-- The oldest and newest of dead jobs that have something in common.
CREATE INDEX ended_dead ON ended (queue, name, reason, error_type, ended_ms) WHERE state = 6;
-- Whether a blob is still needed.
CREATE INDEX ended_body ON ended (body) WHERE body IS NOT NULL;

-- What happened in each queue, minute by minute.
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

-- What operators did.
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

CREATE TRIGGER disjoint BEFORE INSERT ON ended BEGIN
    SELECT RAISE(ABORT, 'overlap')
     WHERE (SELECT first_id + count
              FROM ended
             WHERE first_id < NEW.first_id + NEW.count
             ORDER BY first_id DESC
             LIMIT 1) > NEW.first_id;
END;

-- How many there are, kept by triggers so that it is right whatever is written.
CREATE TABLE tally (
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    name TEXT NOT NULL,
    reason INTEGER NOT NULL,
    error_type TEXT NOT NULL,
    own_age INTEGER NOT NULL,        -- whether they have one: 0 or 1
    jobs INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (queue, state, name, reason, error_type, own_age)
) WITHOUT ROWID;

CREATE TRIGGER tally_insert AFTER INSERT ON ended BEGIN
    INSERT INTO tally (queue, state, name, reason, error_type, own_age, jobs, bytes)
    VALUES (NEW.queue, NEW.state, NEW.name, NEW.reason, NEW.error_type, NEW.due_ms IS NOT NULL,
            NEW.count, NEW.bytes)
    ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER tally_delete AFTER DELETE ON ended BEGIN
    UPDATE tally
       SET jobs = jobs - OLD.count, bytes = bytes - OLD.bytes
     WHERE queue = OLD.queue AND state = OLD.state AND name = OLD.name
       AND reason = OLD.reason AND error_type = OLD.error_type
       AND own_age = (OLD.due_ms IS NOT NULL);
    DELETE FROM tally
     WHERE queue = OLD.queue AND state = OLD.state AND name = OLD.name
       AND reason = OLD.reason AND error_type = OLD.error_type
       AND own_age = (OLD.due_ms IS NOT NULL) AND jobs = 0;
    DELETE FROM body
     WHERE number = OLD.body AND NOT EXISTS (SELECT 1 FROM ended WHERE body = OLD.body);
END;

CREATE TRIGGER tally_update AFTER UPDATE OF state, count, bytes ON ended BEGIN
    INSERT INTO tally (queue, state, name, reason, error_type, own_age, jobs, bytes)
    VALUES (NEW.queue, NEW.state, NEW.name, NEW.reason, NEW.error_type, NEW.due_ms IS NOT NULL,
            NEW.count, NEW.bytes)
    ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, bytes = bytes + excluded.bytes;
    UPDATE tally
       SET jobs = jobs - OLD.count, bytes = bytes - OLD.bytes
     WHERE queue = OLD.queue AND state = OLD.state AND name = OLD.name
       AND reason = OLD.reason AND error_type = OLD.error_type
       AND own_age = (OLD.due_ms IS NOT NULL);
    DELETE FROM tally
     WHERE queue = OLD.queue AND state = OLD.state AND name = OLD.name
       AND reason = OLD.reason AND error_type = OLD.error_type
       AND own_age = (OLD.due_ms IS NOT NULL) AND jobs = 0;
END;

COMMIT;
