"""Flows over two shards, as a rule of the state machine: one transaction has all of a flow, so a
crash leaves all of it or nothing.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from jobline_server.engine.commands import Refused
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from tests.pushed_flows import FlowJob, decide_flow, parts_of
from tests.pushed_rows import NewJob
from tests.storage.dependency_rules import DependencyRules, policies
from tests.storage.message_rules import OTHER
from tests.storage.once_watch import OnceWatch
from tests.storage.recovery_values import delays, options
from tests.storage.recovery_world import SHARD, World

PLACES = {"children": SHARD, "alpha": SHARD, "parents": OTHER}

flows = st.lists(
    st.tuples(
        st.sampled_from([*PLACES]),
        options,
        policies,
        delays,
        st.lists(st.integers(1, 3), max_size=2),
    ),
    min_size=2,
    max_size=4,
)


class FlowRules(DependencyRules):
    """Trees and other shapes of jobs in both shards."""

    once: OnceWatch

    @rule(
        drawn=flows,
        name=st.sampled_from(["", "f1", "f2"]),
        crash=st.sampled_from(["", "", "before", "after"]),
    )
    def push_flow(self, drawn, name, crash):
        jobs = []
        for at, (queue, own, policy, delay, below) in enumerate(drawn):
            rules = replace(own.rules, on_dependency_failure=policy)
            run_at_ms = self._world(PLACES[queue]).now.wall_ms + delay if delay else 0
            children = tuple(dict.fromkeys(at - one for one in below if one <= at))
            job = NewJob(b"f", replace(own, rules=rules), "", run_at_ms)
            jobs.append(FlowJob(queue, job, children))
        # The same name is the same flow as far as the server knows, of as many parts.
        parts = parts_of(jobs, f"{name} {[(job.queue, job.children) for job in jobs]}" * bool(name))
        worlds = [self._world(shard) for shard in (SHARD, OTHER)]
        # The lock that the runtime holds has a commit before it and one behind it, of all shards.
        for world in worlds:
            world.commit()
        before = [self._stored(world) for world in worlds]
        try:
            ids = decide_flow(parts, self._place)
        except Refused:
            assert not any(world.shard.entries for world in worlds), "a refusal left something"
            return
        if crash != "before":
            for world in worlds:
                world.commit()
        after = [self._stored(world) for world in worlds]
        if crash:
            self.once.crash(self._world(SHARD).shard.committed)
            self._crash(SHARD)
            self._crash(OTHER)
            found = [self._stored(world) for world in worlds]
            assert found == (before if crash == "before" else after)
        if name and crash != "before":
            assert decide_flow(parts, self._place) == ids, "it is not known any more"
            assert not any(world.shard.entries for world in worlds)

    def _place(self, queue: str) -> tuple[Shard, Now]:
        world = self._world(PLACES[queue])
        return world.shard, world.now

    def _stored(self, world: World) -> set[int]:
        """The jobs that a start must bring back."""
        return {job.id for job in world.shard.jobs.values() if not job.volatile}
