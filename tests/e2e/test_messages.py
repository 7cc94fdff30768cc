"""Messages between shards of a real server that is killed again and again."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

from jobline_server.runtime.core import Core
from jobline_server.testing import running_server
from tests.e2e.message_sender import QUEUES, SHARDS
from tests.server.conftest import until

# Commits after which a life ends; a short one is killed while it delivers what the last one left.
LIVES = (60, 1, 100, 3)


async def live(data: Path, life: int, commits: int) -> list[str]:
    """Runs a server that is killed after so many commits; returns what it said was on disk."""
    command = [sys.executable, "-m", "tests.e2e.message_sender", str(data), str(life)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(commits)]
    process.kill()
    rest, _ = await process.communicate()
    whole = b"".join(lines) + rest[: rest.rfind(b"\n") + 1]
    return whole.decode().split()


def payloads_of(core: Core) -> Counter[str]:
    """The payloads of all jobs that were pushed by messages."""
    return Counter(
        payload.decode()
        for slot in core.slots
        for lot in slot.shard.lots.lots.values()
        for payload in lot.payloads
    )


async def test_messages_are_applied_once_whenever_the_server_is_killed(tmp_path: Path) -> None:
    """All that was on disk has arrived, nothing twice, and nobody holds anything back."""
    sent: list[str] = []
    for life, commits in enumerate(LIVES):
        sent += await live(tmp_path, life, commits)
    async with running_server(tmp_path) as server:
        core = server.runtime.core
        await until(lambda: not any(slot.shard.messages.outboxes for slot in core.slots))
        arrived = payloads_of(core)
        assert len(core.slots) == SHARDS
        assert {queue for slot in core.slots for queue in slot.shard.queues} <= {*QUEUES}
    assert len(sent) >= 3 * sum(LIVES)
    assert set(sent) <= set(arrived)
    assert set(arrived.values()) == {1}
