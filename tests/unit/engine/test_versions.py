"""Versions of workers, compared part by part."""

from __future__ import annotations

import pytest

from jobline_server.engine.versions import is_new_enough

IN_ORDER = [
    "0.9",
    "1",
    "1.2-rc1",
    "1.2",
    "1.9",
    "1.10-rc1",
    "1.10-rc2",
    "1.10",
    "v1.10.1",
    "2",
    "10",
]


@pytest.mark.parametrize("at", range(len(IN_ORDER)))
def test_a_version_is_newer_than_those_before_it(at):
    """Numbers count as numbers, and what comes before a release is older."""
    later, earlier = IN_ORDER[at:], IN_ORDER[:at]
    assert all(is_new_enough(version, IN_ORDER[at]) for version in later)
    assert not any(is_new_enough(version, IN_ORDER[at]) for version in earlier)


@pytest.mark.parametrize("version", ["1.2", "1.2.0", "v1.2", "1.2+build.7", "1-2", "1_2"])
def test_spellings_of_one_version_are_equal(version):
    """Zeros at the end, a leading v and what follows a plus do not count."""
    assert is_new_enough(version, "1.2")
    assert is_new_enough("1.2", version)


def test_text_is_older_than_any_number():
    """So a worker that names its branch gets what asks for nothing."""
    assert is_new_enough("0", "main")
    assert is_new_enough("main", "main")
    assert not is_new_enough("main", "0")
    assert is_new_enough("1..1", "1.0.1")


def test_a_worker_without_a_version_is_older_than_all():
    """It gets only jobs that ask for none."""
    assert not is_new_enough("", "0")
    assert is_new_enough("", "")
    assert is_new_enough("anything", "")
