"""What is read of a server while it soaks, and what must not grow."""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.processes import memory_bytes

MIB = 1 << 20
# Bytes of memory that may be kept for each job that was handled, and what allocators and page
# caches take in any case. One entry of a table that nobody empties takes a hundred.
BYTES_A_JOB_MAX = 8.0
BYTES_IN_ANY_CASE = 24 * MIB
DESCRIPTORS_MAX = 16
STALL_SECONDS_MAX = 0.020
STALL_QUANTILE = 0.999
# The first part of a soak fills caches, tables and heaps: growth is measured after it.
WARM_UP_SHARE = 0.25

Buckets = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A server at one moment, in totals since its start. `stalls`: upper bounds in seconds and how
    many looks at the loop found it no later than that.
    """

    seconds: float
    memory_bytes: int
    descriptors: int
    handled: int
    keys: int
    stalls: Buckets


def take(seconds: float, pid: int, http: str) -> Sample:
    """Reads the process and its metrics page."""
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=30) as page:  # ours
        text = page.read().decode()
    values: dict[str, float] = {}
    stalls: Buckets = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "jobline_loop_late_seconds_bucket":
                stalls.append((float(sample.labels["le"]), sample.value))
            elif not sample.labels:
                values[sample.name] = sample.value
    return Sample(
        seconds=seconds,
        memory_bytes=memory_bytes(pid),
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        handled=round(values["jobline_jobs_completed_total"]),
        keys=round(values["jobline_keys"]),
        stalls=sorted(stalls),
    )


def stall(samples: Sequence[Sample], quantile: float = STALL_QUANTILE) -> float:
    """The bound in seconds below which this share of the looks at the loop lie."""
    first, last = samples[0].stalls, samples[-1].stalls
    grown = [
        (bound, count - before) for (bound, count), (_, before) in zip(last, first, strict=True)
    ]
    total = grown[-1][1]
    return next((bound for bound, count in grown if count >= quantile * total), 0.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that must hold, and whether it does."""

    what: str
    found: str
    allowed: str
    holds: bool


def judge(samples: Sequence[Sample]) -> list[Verdict]:
    """What grew between the end of the warm-up and the end."""
    warm = [one for one in samples if one.seconds >= samples[-1].seconds * WARM_UP_SHARE]
    third = max(len(warm) // 3, 1)
    early, late = warm[:third], warm[-third:]
    handled = warm[-1].handled - warm[0].handled
    grown = max(_least_memory(late) - _least_memory(early), 0)
    allowed = BYTES_IN_ANY_CASE + BYTES_A_JOB_MAX * handled
    more = min(one.descriptors for one in late) - min(one.descriptors for one in early)
    longest = stall(warm)
    a_job = grown / handled if handled else 0.0
    return [
        Verdict(
            "memory",
            f"{grown / MIB:+.1f} MiB over {handled:,} jobs, {a_job:.2f} bytes a job",
            f"≤ {allowed / MIB:.0f} MiB",
            grown <= allowed,
        ),
        Verdict("descriptors", f"{more:+d}", f"≤ {DESCRIPTORS_MAX}", more <= DESCRIPTORS_MAX),
        Verdict(
            "stall of the loop, p99.9",
            f"≤ {longest * 1_000:g} ms",
            f"≤ {STALL_SECONDS_MAX * 1_000:g} ms",
            longest <= STALL_SECONDS_MAX,
        ),
        Verdict("jobs handled", f"{handled:,}", "> 0", handled > 0),
    ]


def _least_memory(samples: Sequence[Sample]) -> int:
    """What is left when checkpoints and bursts have given back theirs."""
    return min(one.memory_bytes for one in samples)
