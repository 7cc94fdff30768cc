"""What `make soak` takes for growth."""

from __future__ import annotations

import pytest

from benchmarks.soak.samples import MIB, Sample, judge, stall

BOUNDS = (0.01, 0.02, 0.05)


def soaked(*, memory_mib=lambda _minute: 100.0, descriptors=lambda _minute: 40, late=0):
    """Samples of ten minutes, a thousand looks and a hundred thousand jobs each."""
    return [
        Sample(
            seconds=60.0 * minute,
            memory_bytes=round(memory_mib(minute) * MIB),
            descriptors=descriptors(minute),
            handled=100_000 * minute,
            keys=0,
            stalls=[(bound, 1_000 * minute - late * (bound < 0.05)) for bound in BOUNDS],
        )
        for minute in range(11)
    ]


def failed(samples):
    return [verdict.what for verdict in judge(samples) if not verdict.holds]


def test_a_server_that_keeps_its_size_holds():
    assert failed(soaked()) == []


def test_a_warm_up_is_no_growth():
    assert failed(soaked(memory_mib=lambda minute: 100 + 200 * min(minute, 2))) == []


@pytest.mark.parametrize(
    ("grown", "what"),
    [
        ({"memory_mib": lambda minute: 100 + 10 * minute}, ["memory"]),
        ({"descriptors": lambda minute: 40 + 5 * minute}, ["descriptors"]),
    ],
)
def test_what_grows_with_the_jobs_is_found(grown, what):
    """A hundred bytes a job, a descriptor for each few reconnects."""
    assert failed(soaked(**grown)) == what


def test_the_stall_is_that_of_one_look_in_a_thousand():
    samples = soaked()
    assert stall(samples) == BOUNDS[0]
    slow = [*samples[:-1], soaked(late=100)[-1]]
    assert stall(slow) == BOUNDS[2]
    assert failed(slow) == ["stall of the loop, p99.9"]
