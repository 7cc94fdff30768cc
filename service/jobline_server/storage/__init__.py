"""Storage: what stays. Journal first, tables later.

A shard's facts go into its *journal*, one row a commit, and are answered after the fsync. Now and
then a *checkpoint* folds the journal into *items* (lots, jobs, queues, keys), so that the journal
can be cut short. Recovery loads the items and applies the journal's tail. Ended jobs live in a file
of their own.

Two interfaces stand here, and a folder for each store that implements them:

- `store.py`: the journal, the items and the fence of a shard (`Store`);
- `ended_store.py`: jobs that ended (`EndedJobStore`);
- `recovery_cases.py`: what a store may find when it opens, and what is decided then, as a numbered
  table;
- `sqlite/`: both interfaces over two SQLite files, the default.

Stores move rows and blobs. They do not know what a job is, when something is due, or who waits for
a commit: only the codec knows the engine and protobuf both, and the caller decides when to commit,
checkpoint and cut.
"""
