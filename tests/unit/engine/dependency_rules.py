"""Rules of the random histories in which jobs depend on others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.add_children import (
    FlowParent,
    decide_add_children,
    decide_set_aside,
)
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import AckLevel
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine import reference_dependencies
from tests.unit.engine.histories import DELAYS, KIND, LEVELS, OPTIONS, QUEUE
from tests.unit.engine.side_by_side import SideBySide, reached

POLICIES = st.sampled_from([None, *DependencyPolicy])
CHILDREN = st.lists(
    st.tuples(
        KIND,
        POLICIES,
        st.sampled_from([None, None, 0, 3_000, 40_000]),
        st.lists(st.integers(0, 400), max_size=3),
        st.lists(st.sampled_from([0, 0, *DependencyPolicy]), min_size=3, max_size=3),
        st.lists(st.integers(0, 3), max_size=2),
        st.sampled_from(["", "", "", "k1"]),
        DELAYS,
        st.sampled_from(["", "", "g1"]),
        st.sampled_from(["", "", "u1", "u2"]),
        st.sampled_from(UniqueMode),
    ),
    min_size=1,
    max_size=4,
)


def has_leases(machine):
    return machine.both.leases


class DependencyRules(RuleBasedStateMachine):
    """Jobs are pushed that wait for any jobs that are, or were, or never will be."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()

    @rule(queue=QUEUE, children=CHILDREN, level=LEVELS, atomic=st.booleans())
    def push_children(self, queue, children, level, atomic):
        jobs = []
        for index, child in enumerate(children):
            kind, policy, timeout_ms, picks, about, indexes, key, delay, group, unique_key, mode = (
                child
            )
            options = OPTIONS[kind]
            own = {"on_dependency_failure": policy, "block_timeout_ms": timeout_ms}
            if unique_key:
                own["unique"] = UniqueRule(mode, 5_000)
            # The jobs of a group have their order by their pushes alone.
            is_plain = not (options.priority or options.rules.lifo)
            parents = tuple(dict.fromkeys(self.both.ids_at(picks)))
            about_each = bytes(about[: len(parents)])
            ties = Ties(group if is_plain else "", unique_key, parents, on_failure=about_each)
            jobs.append(
                NewJob(
                    b"x",
                    replace(options, rules=replace(options.rules, **own)),
                    key,
                    self.both.now.wall_ms + delay if delay else 0,
                    ties=ties if ties != NO_TIES else NO_TIES,
                    parent_indexes=tuple(one for one in indexes if one < index),
                )
            )
        self.both.push(Push(queue, OPTIONS[0], rows_of(jobs), Payloads.of([]), 0, level, atomic))

    @precondition(has_leases)
    @rule(pick=st.integers(0, 400), queue=QUEUE, children=st.integers(1, 3))
    def add_children(self, pick, queue, children):
        """A worker sets its job aside for new children. As a flow is checked before, they are
        pushed first here, where there may be no room for them.
        """
        both = self.both
        before = {*both.model.jobs}
        plain = Payloads.of([b"c"] * children)
        both.push(Push(queue, OPTIONS[0], rows_of([]), plain, 0, AckLevel.FSYNCED))
        new = [job_id for job_id in both.model.jobs if job_id not in before]
        if not new:
            return
        both.begin()
        lease = both.lease_at(pick)
        try:
            parent = FlowParent(*lease)
            decide_set_aside(both.shard, both.now, parent, len(new))
            refused = ""
        except Refused as refusal:
            refused = refusal.kind.value
        assert refused == reference_dependencies.set_aside(both.model, *lease)
        reached[f"children added: {refused or 'DONE'}"] += 1
        if not refused:
            decide_add_children(both.shard, both.now, parent, new, {})
            reference_dependencies.add_children(both.model, lease[0], new)
