"""Jobline's server: a durable job queue over gRPC, in one process with one asyncio loop.

A command of a caller is decided by the engine, applied to memory, committed to SQLite, and only
then answered. Jobs are leased to workers over streams or pulls; a restart recovers them from disk.

The rooms are floors; each imports only from the floors below it (`make lint` checks this):

    5  app, serving, config, cli       wires the rooms, starts and stops the process
    4  rpc, web, background            gRPC calls, metrics and health pages, periodic tasks
    3  runtime                         the loop: reads the clock, decides, commits, replies
    2  dispatch, storage               which consumer gets the next job; journal and tables
    1  telemetry, wire                 logs and counters; values to messages and back
    0  engine                          the state machine of queues, jobs and leases

The server deliberately does not know what a payload means, and does not run jobs. Of the client it
uses only the messages (`jobline.v1`). The engine knows no clock, no chance, no disk and no message,
so a test can repeat a run exactly.

`docs/architecture.md` explains the rooms and follows a push, a lease and an ack through them;
`docs/guarantees.md` lists what callers can rely on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobline_server.embedding import embedded

__all__ = ["embedded"]


def __getattr__(name: str) -> Any:
    """Loads `embedded` at its first use: to load the server takes half a second."""
    if name == "embedded":
        from jobline_server.embedding import embedded  # noqa: PLC0415  # as said above

        return embedded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
