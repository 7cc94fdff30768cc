"""Dispatch: which consumer gets the next job, and the protocol of a worker stream.

Pure, like the engine. `Session` is a worker stream as a protocol: frames go in, frames come out,
time is an argument. `ConsumerRings` keeps the consumers of each queue in a ring and picks the next.
Both know no socket, no loop, no disk and no message class, and decide nothing about jobs. The
clients implement the other side of `Session`.
"""
