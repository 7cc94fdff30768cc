"""What producers ask: push."""

from __future__ import annotations

from jobline_server.engine.commands import Push, Pushed
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.values import AckLevel
from jobline_server.runtime.core import Core


class Producers:
    """Pushes."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def push(self, command: Push) -> Pushed:
        """Stores jobs and returns when the level is reached. A push whose keys are all known waits
        for the commit that may still be under way for them.
        """
        core = self._core
        shard = core.shard_of_queue(command.queue)
        core.check_accepting(shard, len(command.jobs) + len(command.payloads) + 1)
        pushed = decide_push(shard, core.now(), command)
        core.decided(shard)
        if pushed.level is AckLevel.FSYNCED:
            await core.commits.wait()
        return pushed
