"""Dispatch: who gets the next job, and what a worker stream says; pure, like the engine.

A `Session` is a worker stream as a protocol: frames go in, frames come out, time is an argument.
`ConsumerRings` keeps which consumers wait for which queue, and who is next. Neither knows a socket,
a loop, a disk or a message class; both clients hold the session's mirror image.
"""
