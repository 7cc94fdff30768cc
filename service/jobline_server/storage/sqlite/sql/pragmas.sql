-- How every connection is set up. Each statement is run in this order and its answer is compared: a
-- setting that did not take refuses the start.

-- name: page_size
-- Bytes a page, fixed when a file is made. Commits of 200 bytes write two pages and want them small,
-- blobs of 100 KB want few. Measured with pages of 4, 8, 16, 32 and 64 KiB: 5,400 6,100 6,100 5,500
-- 4,200 small commits a second, and 179 181 194 181 132 MB/s of large ones.
PRAGMA page_size = 8192;

-- name: auto_vacuum
-- Lets free pages be given back to the file system, when we ask for it: a disk that is full of jobs
-- has room again once they are deleted. Fixed when a file is made, as the page size is. Measured: a
-- commit of 200 bytes costs 2 % more processor time, one of 20 KB 10 % of 18 µs, next to an fsync.
PRAGMA auto_vacuum = INCREMENTAL;

-- name: locking_mode
-- The file is ours until we close it: no second connection, so no WAL-reset bug, and no shared
-- memory file.
PRAGMA locking_mode = EXCLUSIVE;

-- name: journal_mode
-- A commit is one sequential write and one fsync; readers are not a reason, there are none.
PRAGMA journal_mode = WAL;

-- name: synchronous
-- Replaced by the file's own level: FULL fsyncs the WAL in each commit, NORMAL only before pages
-- move.
PRAGMA synchronous = {synchronous};

-- name: wal_autocheckpoint
-- A backstop only, in pages: moving pages is started by us between commits, because SQLite does it
-- inside one and swallows the errors it meets (sqlite3WalDefaultHook).
PRAGMA wal_autocheckpoint = {backstop_pages};

-- name: secure_delete
-- Debian builds SQLite with overwriting on; it would write zeros over each truncated journal row.
PRAGMA secure_delete = OFF;

-- name: cache_size
-- Memory for pages, in KiB where negative; it fills with use, so an empty server stays small.
PRAGMA cache_size = {cache_size};

-- name: temp_store
-- Sorting spills to memory: a full disk must not break a query.
PRAGMA temp_store = MEMORY;

-- name: cell_size_check
-- Looks at the cells of a page when it is read, so that a rotten page is an error and not a wrong
-- answer.
PRAGMA cell_size_check = ON;
