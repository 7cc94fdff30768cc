"""Helm and the other programs may be slow to start on a machine that does other things, too."""

from __future__ import annotations

from pathlib import Path

import pytest

SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the tests of this folder more time."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(SECONDS))
