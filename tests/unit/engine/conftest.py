"""What the engine's tests share: a shard whose clock is turned by hand."""

from __future__ import annotations

import pytest

from tests.unit.engine.world import World


@pytest.fixture
def world() -> World:
    """A shard without any queue."""
    return World()
