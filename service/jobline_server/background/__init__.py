"""Background work of the server: one file per periodic task.

A task has `run_once(now)` and returns counts of what it did; the loop around it (`periodic.py`) is
shared. Checkpoints, retention, idle queues, old streams, the ballast and the warning about
unhandled names are such tasks; `app` lists them.

Tasks use the runtime like any other caller. They know no store and no socket, and they do not walk
over live jobs: they iterate over queues and streams, take ended jobs in slices, and leave the rest
for the next run.
"""
