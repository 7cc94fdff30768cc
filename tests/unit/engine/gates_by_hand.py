"""Gates that a test closes and opens itself, as limits and sessions do within their own steps."""

from __future__ import annotations

from jobline_server.engine.gates import UNTIL_NOTICE
from jobline_server.engine.lane import LaneKey
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def close_gate(shard: ShardState, queue: Queue, key: LaneKey, opens_ms: int = UNTIL_NOTICE) -> None:
    """Closes the gate of a lane until a time in monotonic milliseconds."""
    queue.close_gate(key, opens_ms)
    shard.gates.note(queue)


def open_gate(shard: ShardState, queue: Queue, key: LaneKey) -> None:
    """Opens the gate of a lane and wakes its queue."""
    queue.open_gate(key)
    shard.wake(queue)
