"""The background: work that nobody asks for, one file per beat.

A beat has `run_once(now)` and returns what it did as counts; the loop around it (`beat.py`) is
shared. No beat walks over live jobs: it looks at queues and streams, takes ended jobs in slices,
and leaves the rest for its next run.
Beats use the runtime as any caller does; they know no store and no socket.
"""
