-- From format 2 of jobline.db to 3: the tables are the same, but there are kinds of items and fields of
-- blobs (bundles, payloads of lots, messages between shards, columns) that a version which reads format
-- 2 would leave out.

BEGIN IMMEDIATE;

PRAGMA user_version = 3;

COMMIT;
