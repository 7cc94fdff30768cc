"""Storage: what is durable. Journal first, tables later.

A shard's facts go into its *journal*, one row per commit, and calls are answered after the fsync.
From time to time a *checkpoint* folds the journal into *items* (lots, jobs, queues, keys), so that
the journal can be truncated. Recovery loads the items and applies the rest of the journal. Ended
jobs are in a file of their own.

The room has the interfaces, and a folder for each store that implements them:

- `store.py`: the journal, the items and the fence of a shard (`Store`);
- `ended_store.py`: jobs that ended (`EndedJobStore`);
- `space.py`: the room on the disk (`Space`), for stores that are files in a directory;
- `stores.py`: the three together (`Stores`), as `open_runtime` takes them;
- `recovery_cases.py`: what a store may find when it opens, and what is decided then, as a numbered
  table;
- `sqlite/`: the interfaces over two SQLite files, the default.

Stores read and write rows and blobs. They do not know what a job is, when something is due, or who
waits for a commit: only the codec knows both the engine and protobuf, and the caller decides when
to commit, checkpoint and truncate.
"""
