"""The worker: handlers, and what keeps them fed and their leases alive.

One `Worker` holds one stream. Its threads and tasks, and what each may block on:

    jobline-reader      reads frames, routes jobs to the backlogs, opens the next stream when one
                        breaks
    (gRPC's own)        pulls frames from the session: settles, reports, heartbeats
    jobline-supervisor  watchdog, window, batch waits, stuck handlers, the stages of a drain
    runners             tasks on the user's loop for async handlers, threads for plain ones

They share two things only: the `SharedSession` (the session behind one lock) and the backlogs of
the runners. None of the first three runs a handler, so a handler that blocks its loop or thread
keeps its lease. The pure parts (`jobline._stream`, `window`, `drain`, `batches`, `grace_periods`)
know neither threads nor time.
"""
