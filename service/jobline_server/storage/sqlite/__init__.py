"""SQLite: the interfaces of `storage` over the files of one directory, which `stores_in` of
`directory.py` puts together.

    jobline.db      shards, journal, items         store.py bootstrap.py loading.py
                                                   journal.py items.py
    finished.db     jobs that ended                ended_store.py ended_ops.py
                                                   ended_queries.py ended_scans.py
    promise         the last acknowledged commits  watermark.py
    ballast         room to give up                ballast.py space.py
    lock            held while a process runs      files.py

`connection.py` is a file with its thread, `pages.py` its size, `failures.py` translates errors of
writes, and `statements.py` reads the SQL, which is in `sql/`, with a sentence about each statement.

Each database has one connection on one thread (SQLite 3.40 loses commits with two, see the
WAL-reset bug at https://sqlite.org/wal.html), and every transaction is one plain function that runs
there from begin to end: nothing comes between its statements, and it costs one hop from the loop.
Python's lock is taken anew after every step of a statement, and a busy loop releases it late, so
frequent statements have many rows each.

Nothing here reads the contents of a blob.
"""
