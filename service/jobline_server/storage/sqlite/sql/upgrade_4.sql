-- From format 3 of jobline.db to 4: the tables are the same, but there are kinds of items and fields of
-- blobs (what ties jobs to others, options that few jobs set) that a version which reads format 3 would
-- leave out: it would hand out such jobs as if they asked for nothing.

BEGIN IMMEDIATE;

PRAGMA user_version = 4;

COMMIT;
