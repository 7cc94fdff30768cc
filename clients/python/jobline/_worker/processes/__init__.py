"""Handlers in processes of their own: `Worker(processes=N)`.

The worker keeps the stream, the leases and the backlog. Each child has a main thread, which runs
one handler at a time, and a thread that listens to the worker. What a handler says goes through a
pipe and becomes the very calls that a handler in a thread would have made.
"""
