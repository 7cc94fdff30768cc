"""A world with a fair queue, and short words for what tenants do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobline_server.engine.decide.groups import decide_update_group
from jobline_server.engine.fair import FairShare
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from tests.pushed_rows import NewJob
from tests.unit.engine.world import World


class FairWorld(World):
    """One shard with the fair queue "q"."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings(fair=True, **settings)

    @property
    def fair(self) -> FairShare:
        fair = self.queue().fair
        assert fair is not None
        return fair

    def jobs(self, *groups: str, options: JobOptions = DEFAULT_OPTIONS) -> list[int]:
        """Pushes a job per group; returns the ids."""
        rows = [NewJob(b"x", options, ties=Ties(group)) for group in groups]
        first_id = self.push(jobs=rows).first_id
        return list(range(first_id, first_id + len(groups)))

    def change(self, group: str, **settings: Any) -> None:
        """The group has these settings and no others."""
        wanted = GroupSettings(**settings)
        decide_update_group(self.shard, self.now, "q", group, wanted, None)
        self.commit()

    def served(self, most: int = 100, **rest: Any) -> list[str]:
        """Leases, and says whose jobs came in which order."""
        return [job.group for job in self.lease(most, **rest).jobs]

    def end(self, ids: Iterable[int]) -> None:
        """Acks jobs that are held."""
        assert self.ack([(job_id, self.shard.jobs[job_id].delivery) for job_id in ids]) == []

    def names(self) -> set[str]:
        """The tenants that are known."""
        return {tenant.name for tenant in self.fair.tenants}
