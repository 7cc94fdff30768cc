"""READY jobs by priority and name: what lanes hold, without a look at them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.lane import Lane
from jobline_server.engine.ready import ReadyCounts

KEYS = [(priority, name, size) for priority in (-1, 0, 7) for name in "abc" for size in (0, 1)]
CHANGES = st.dictionaries(st.sampled_from(range(len(KEYS))), st.integers(0, 5))


@given(changes=st.lists(CHANGES, max_size=20), names=st.frozensets(st.sampled_from("abcdefgh")))
def test_counts_are_those_of_the_lanes(changes, names):
    """Whatever comes and goes; highest priority first, and nothing that is 0."""
    counts, lanes = ReadyCounts(), [Lane(*key) for key in KEYS]
    for change in changes:
        before = {lanes[at]: lanes[at].ready for at, jobs in change.items()}
        for at, jobs in change.items():
            lanes[at].ready = jobs
        assert counts.add_all(before) == sum(lane.ready - had for lane, had in before.items())
        by_priority: Counter[int] = Counter()
        by_name: Counter[str] = Counter()
        for lane in lanes:
            by_priority[lane.priority] += lane.ready
            by_name[lane.name] += lane.ready
        assert [*counts.priorities()] == sorted((+by_priority).items(), reverse=True)
        assert dict(counts.names()) == +by_name
        assert counts.of_names(names) == sum(by_name[name] for name in names)
        assert counts.named() == dict(counts.names()).keys()


def test_nothing_more_is_nothing():
    counts = ReadyCounts()
    counts.add(Lane(7, "a"), 0)
    assert ([*counts.priorities()], [*counts.names()]) == ([], [])
