"""The limit on descriptors is raised, never lowered."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from jobline_server import descriptors


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """The soft and the hard limit, which are put back."""
    found = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield found
    resource.setrlimit(resource.RLIMIT_NOFILE, found)


def test_as_many_as_connections_need(limits: tuple[int, int]) -> None:
    """But no more: each may be a kilobyte of the kernel's memory."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, limits[1]))

    assert descriptors.raise_limit(500) == 500 * 3 + 1_024
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2_524, limits[1])
    assert descriptors.raise_limit(100) == 2_524


def test_as_many_as_the_hard_limit_allows(limits: tuple[int, int]) -> None:
    """An operator who wants less says so there."""
    soft = descriptors.raise_limit(1 << 40) if limits[1] != resource.RLIM_INFINITY else limits[0]

    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, limits[1])
