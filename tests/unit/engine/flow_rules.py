"""Rules of the random histories that flows take part in."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.runtime.calls.flows import FlowPart
from tests.pushed_flows import FlowJob, parts_of
from tests.pushed_rows import NewJob
from tests.unit.engine.histories import DELAYS, KIND, OPTIONS, QUEUE
from tests.unit.engine.side_by_side import SideBySide

FLOWS = st.lists(
    st.tuples(
        QUEUE,
        KIND,
        st.sampled_from([None, *DependencyPolicy]),
        DELAYS,
        st.sampled_from(["", "", "", "g1"]),
        st.lists(st.integers(1, 4), max_size=3),
    ),
    min_size=2,
    max_size=5,
)


class FlowRules(RuleBasedStateMachine):
    """Trees and other shapes of jobs over two queues, all of them or none."""

    both: SideBySide

    def __init__(self) -> None:
        super().__init__()
        self.flows: list[list[FlowPart]] = []

    @rule(drawn=FLOWS, is_named=st.booleans())
    def push_flow(self, drawn, is_named):
        """The last job waits for some; what nobody would wait for is a flow of its own beside."""
        jobs = []
        for at, (queue, kind, policy, delay, group, below) in enumerate(drawn):
            options = OPTIONS[kind]
            if policy is not None:
                rules = replace(options.rules, on_dependency_failure=policy)
                options = replace(options, rules=rules)
            run_at_ms = self.both.now.wall_ms + delay if delay else 0
            ties = Ties(group) if group else NO_TIES
            children = tuple(dict.fromkeys(at - one for one in below if one <= at))
            job = NewJob(b"x" * (at % 2), options, "", run_at_ms, ties=ties)
            jobs.append(FlowJob(queue, job, children))
        parts = parts_of(jobs, f"flow {len(self.flows)}" if is_named else "")
        if is_named:
            self.flows.append(parts)
        self.both.push_flow(parts)

    @precondition(lambda self: self.flows)
    @rule(pick=st.integers(0, 9))
    def push_flow_again(self, pick):
        """A reply was lost; or the flow was refused, and there may be room by now."""
        self.both.push_flow(self.flows[pick % len(self.flows)])
