"""Ended jobs: written to the ended store after their commit, found there, aged and evicted.

- `writer.py` writes them, once a second, and `ended_jobs.py` finds and changes them;
- `outcomes.py` looks up what became of jobs before something is decided that depends on them;
- `due.py` has the rules of retention, `retention.py` applies them in slices, and
  `retention_hints.py` notes where something may be due;
- `damage.py` and `evictions.py` count and log what operators should know;
- on a full disk `disk_space.py` makes room, `reserve.py` says which writes may take the reserve,
  and `waiting_ops.py` what will become of those that wait.
"""
