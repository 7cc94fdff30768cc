"""The health of a worker: what is wrong with it, and its metrics, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jobline._worker.drain import Stage
from jobline._worker.tallies import BUCKETS

# Seconds without a stream, and without a turn of the loop, after which a worker is not healthy.
STREAM_DOWN_SECONDS = 10.0
LOOP_BLOCKED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """A worker at a moment. Times are in seconds, None for none."""

    stage: Stage
    is_open: bool
    down_for: float | None
    loop_blocked_for: float | None
    running: int = 0
    slots: int = 0
    reconnects: int = 0
    abandoned: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, tuple[list[int], float]] = field(default_factory=dict)


def reasons_of(vitals: Vitals) -> list[str]:
    """Returns what is wrong with a worker that does not stop."""
    found = []
    if vitals.down_for is not None and vitals.down_for > STREAM_DOWN_SECONDS:
        found.append("STREAM_DOWN")
    if vitals.loop_blocked_for is not None and vitals.loop_blocked_for > LOOP_BLOCKED_SECONDS:
        found.append("LOOP_BLOCKED")
    return found


def health_of(vitals: Vitals) -> tuple[int, dict[str, object]]:
    """Returns the HTTP status and the answer of `/healthz`."""
    if vitals.stage is Stage.STOPPED:
        return 503, {"status": "unhealthy", "reasons": ["STOPPED"]}
    if vitals.stage is not Stage.WORKING:
        return 200, {"status": "draining"}
    reasons = reasons_of(vitals)
    if reasons:
        return 503, {"status": "unhealthy", "reasons": reasons}
    return 200, {"status": "ok"}


def metrics_of(vitals: Vitals) -> str:
    """Returns the metrics in the text format 0.0.4 of Prometheus."""
    return "".join(f"{line}\n" for line in _lines(vitals))


def _lines(vitals: Vitals) -> Iterator[str]:
    yield from _plain("worker_up", "gauge", "Whether the stream is alive.", int(vitals.is_open))
    yield from _plain("worker_running_jobs", "gauge", "Jobs whose handlers run.", vitals.running)
    yield from _plain("worker_slots", "gauge", "Handlers that may run at once.", vitals.slots)
    name = "jobline_worker_settled_jobs_total"
    yield from _head(name, "counter", "Settled jobs by outcome.")
    for outcome, count in vitals.outcomes.items():
        yield f'{name}{{outcome="{outcome}"}} {count}'
    yield from _histograms(vitals)
    yield from _plain(
        "worker_reconnects_total", "counter", "Streams after the first.", vitals.reconnects
    )
    yield from _plain(
        "worker_abandoned_handlers_total",
        "counter",
        "Handlers that ignored their end.",
        vitals.abandoned,
    )


def _histograms(vitals: Vitals) -> Iterator[str]:
    name = "jobline_worker_handler_seconds"
    yield from _head(name, "histogram", "How long handlers took, by name of job.")
    for job_name, (counts, total) in vitals.histograms.items():
        label, seen = f'name="{_escaped(job_name)}"', 0
        for bound, count in zip(
            [f"{bound:g}" for bound in BUCKETS] + ["+Inf"], counts, strict=True
        ):
            seen += count
            yield f'{name}_bucket{{{label},le="{bound}"}} {seen}'
        yield f"{name}_sum{{{label}}} {total:.6f}"
        yield f"{name}_count{{{label}}} {seen}"


def _plain(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield from _head(f"jobline_{name}", kind, text)
    yield f"jobline_{name} {value}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
