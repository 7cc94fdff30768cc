"""Watch: events of committed batches for watchers, and calls that wait for jobs to end.

Both listen to commits and never delay one. The feed keeps recent batches as runs of events, which
all watchers share; waiters are found by job id. Nothing here changes a job.
"""
