"""A server that sends messages between its shards until it is killed, and prints the payload of
each once it is on disk: `python -m tests.e2e.message_sender DIRECTORY LIFE`.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.runtime.core import Core
from jobline_server.runtime.slots import ShardSlot
from jobline_server.testing import running_server

SHARDS = 4
QUEUES = [f"q{number}" for number in range(8)]


async def send_all(core: Core, slot: ShardSlot, life: str) -> None:
    """Sends from one shard to the queues of all, a few messages a commit."""
    for number in count():
        payloads = [f"{life}-{slot.number}-{number}-{index}" for index in range(3)]
        for index, payload in enumerate(payloads):
            queue = QUEUES[(number + index) % len(QUEUES)]
            jobs = PushJobs(queue, DEFAULT_OPTIONS, Payloads.of([payload.encode()]))
            to_shard = core.slots.of_queue(queue).number
            decide_send(slot.shard, core.now(), to_shard, [jobs])
        core.after_decision(slot)
        await core.commits.wait(slot)
        print(*payloads, flush=True)


async def main(data: Path, life: str) -> None:
    async with running_server(data, shards=SHARDS) as server:
        core = server.runtime.core
        await asyncio.gather(*(send_all(core, slot, life) for slot in core.slots))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
