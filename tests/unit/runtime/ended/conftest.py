"""A runtime whose jobs end at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jobline_server.runtime.clock import ManualClock
from tests.unit.background.conftest import Keeping
from tests.unit.runtime.in_memory import new_stores, started


@pytest.fixture
async def keeping() -> AsyncIterator[Keeping]:
    """A runtime without jobs, over stores in memory."""
    clock = ManualClock()
    runtime = await started(new_stores(), clock)
    yield Keeping(runtime, clock)
    await runtime.stop()
