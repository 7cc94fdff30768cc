"""Calls of producers and request ids for Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jobline_server.engine.producers import Call
from tests.storage.value_strategies import digests


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Calls of producers, and how many jobs each brought."""
    numbers = st.integers(0, (1 << 64) - 1)
    call = st.builds(Call, st.binary(min_size=16, max_size=16), numbers, numbers, numbers)
    rows = draw(st.lists(st.tuples(call, st.integers(1, 10_000)), max_size=3))
    return {"calls": tuple(c for c, _ in rows), "call_jobs": tuple(jobs for _, jobs in rows)}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """The request id of a push, or none; without one there is no digest either."""
    if draw(st.booleans()):
        return {}
    return {
        "request_hash": draw(st.binary(min_size=16, max_size=16)),
        "request_digest": draw(digests),
    }
