"""Hypothesis strategies for facts; every field gets values of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from jobline_server.engine import (
    entries,
    report_entries,
    update_entries,
    values,
)
from tests.pushed_payloads import with_columns
from tests.storage import dependency_strategies
from tests.storage.batch_strategies import BATCH_FACTS
from tests.storage.call_strategies import calls, requests
from tests.storage.dependency_strategies import blocked_columns
from tests.storage.group_strategies import GROUP_FACTS
from tests.storage.shard_strategies import SHARD_FACTS
from tests.storage.unique_strategies import UNIQUE_KEY_FACTS
from tests.storage.value_strategies import (
    Any_,
    counts,
    deliveries,
    digests,
    errors,
    id_lists,
    ids,
    job_options,
    log_lines,
    moments,
    optional,
    payloads,
    records,
    text,
    ties,
)

# Set in all that this version writes.
ages = st.integers(1, 1 << 50)


@st.composite
def lots_pushed(draw: st.DrawFn) -> entries.LotPushed:
    lot = draw(payloads.flatmap(with_columns))
    has_keys = lot.columns is not None and lot.columns.job_keys is not None
    return entries.LotPushed(
        at_ms=draw(moments),
        queue=draw(text),
        first_id=draw(ids),
        options=draw(job_options),
        payloads=lot,
        digests=tuple(draw(digests) for _ in lot) if has_keys else (),
        run_at_ms=draw(moments),
        aged_ms=draw(ages),
        stored_rows=draw(st.binary(max_size=2)),
        **draw(calls()),
        **draw(requests()),
    )


@st.composite
def jobs_pushed(draw: st.DrawFn) -> entries.JobsPushed:
    rows = draw(payloads)

    def column(strategy: Any_) -> Any:
        full = st.lists(strategy, min_size=len(rows), max_size=len(rows))
        return draw(st.just([]) | full)

    kinds = draw(st.lists(job_options, min_size=1, max_size=2))
    keys = column(text)
    return entries.JobsPushed(
        at_ms=draw(moments),
        queue=draw(text),
        first_id=draw(ids),
        options=column(st.sampled_from(kinds)) or [kinds[0]],
        payloads=rows,
        run_at_ms=column(moments),
        job_keys=keys,
        digests=[draw(digests) for _ in keys],
        ties=column(ties),
        **draw(blocked_columns()),
        aged_ms=draw(ages),
        stored_rows=draw(st.binary(max_size=2)),
        **draw(calls()),
        **draw(requests()),
    )


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """`starts` and `counts` beside each other."""
    pairs = draw(st.lists(st.tuples(ids, counts), max_size=4))
    return {"starts": [start for start, _ in pairs], "counts": [count for _, count in pairs]}


@st.composite
def with_results(draw: st.DrawFn, kind: type) -> Any:
    """A fact whose jobs may have left results."""
    results = draw(st.dictionaries(ids, st.binary(max_size=8), max_size=3))
    return kind(
        at_ms=draw(moments),
        **draw(runs()),
        result_ids=list(results),
        results=list(results.values()),
    )


@st.composite
def jobs_leased(draw: st.DrawFn) -> entries.JobsLeased:
    columns = draw(runs())
    return entries.JobsLeased(
        at_ms=draw(moments),
        queue=draw(text),
        worker=draw(text),
        session=draw(text),
        lease_ms=draw(moments),
        **columns,
        deliveries=[draw(deliveries) for _ in columns["starts"]],
        version=draw(text),
    )


@st.composite
def of_ended(draw: st.DrawFn, kind: type) -> Any:
    """A fact about ended jobs of one queue."""
    return kind(
        at_ms=draw(moments),
        queue=draw(text),
        state=draw(st.sampled_from(values.JobState)),
        **draw(runs()),
    )


@st.composite
def jobs_retried(draw: st.DrawFn) -> entries.JobsRetried:
    jobs, automatic = draw(st.lists(records, max_size=3)), draw(st.booleans())
    return entries.JobsRetried(
        at_ms=draw(moments),
        jobs=jobs,
        states=[draw(st.sampled_from(values.JobState)) for _ in jobs],
        automatic=automatic,
        outcomes=draw(st.just([]) | st.just([values.JobState.DEAD] * len(jobs))),
    )


@st.composite
def job_logged(draw: st.DrawFn) -> report_entries.JobLogged:
    """Lines of one attempt."""
    attempt = draw(st.integers(1, 1_000))
    lines = [line._replace(attempt=attempt) for line in draw(st.lists(log_lines, max_size=3))]
    return report_entries.JobLogged(draw(moments), draw(text), draw(ids), lines, draw(counts))


percents = st.floats(0, 100)
FACTS: dict[type, Any_] = {
    entries.LotPushed: lots_pushed(),
    entries.JobsPushed: jobs_pushed(),
    entries.JobsReady: st.builds(
        entries.JobsReady,
        at_ms=moments,
        queue=text,
        ids=id_lists,
        lots=id_lists,
        promoted=st.booleans(),
    ),
    update_entries.KeyForgotten: st.builds(
        update_entries.KeyForgotten,
        at_ms=moments,
        queue=text,
        key_hash=st.binary(min_size=16, max_size=16),
    ),
    update_entries.JobUpdated: st.builds(
        update_entries.JobUpdated,
        at_ms=moments,
        queue=text,
        id=ids,
        payload=st.none() | st.binary(max_size=8),
        priority=st.none() | st.integers(-(2**31), 2**31 - 1),
        run_at_ms=st.none() | moments,
    ),
    **UNIQUE_KEY_FACTS,
    **BATCH_FACTS,
    **dependency_strategies.FACTS,
    entries.JobsLeased: jobs_leased(),
    entries.JobsCompleted: with_results(entries.JobsCompleted),
    entries.JobFailed: st.builds(
        entries.JobFailed,
        at_ms=moments,
        id=ids,
        run_at_ms=moments,
        error=errors,
        queue=text,
        name=text,
        delivery=deliveries,
        attempt=st.integers(1, 1_000),
        worker=text,
        timed_out=st.booleans(),
    ),
    entries.JobDied: st.builds(
        entries.JobDied,
        at_ms=moments,
        id=ids,
        reason=st.sampled_from(values.EndReason),
        error=optional(errors),
        timed_out=st.booleans(),
    ),
    entries.JobsExpired: st.builds(
        lambda at, columns, dead: entries.JobsExpired(at, **columns, to_dead=dead),
        *(moments, runs(), st.booleans()),
    ),
    entries.JobsStalled: st.builds(
        entries.JobsStalled,
        at_ms=moments,
        queue=text,
        ids=id_lists,
        run_at_ms=st.lists(moments, max_size=4),
        reason=st.sampled_from(values.EndReason),
        worker=text,
    ),
    entries.JobsReleased: st.builds(
        entries.JobsReleased,
        at_ms=moments,
        queue=text,
        ids=id_lists,
        run_at_ms=st.lists(moments, max_size=4),
        why=st.sampled_from(values.ReleaseReason),
        worker=text,
    ),
    report_entries.JobReported: st.builds(
        report_entries.JobReported,
        at_ms=moments,
        queue=text,
        id=ids,
        progress=optional(st.floats(0, 100)),
        message=optional(text),
        worker_checkpoint=optional(st.binary(max_size=8)),
    ),
    report_entries.JobLogged: job_logged(),
    report_entries.PhaseCompleted: st.builds(
        report_entries.PhaseCompleted, moments, text, ids, text, st.binary(max_size=8), percents
    ),
    entries.JobsCancelled: st.builds(
        lambda fact, error: replace(fact, error=error),
        with_results(entries.JobsCancelled),
        optional(errors),
    ),
    entries.CancelRequested: st.builds(
        entries.CancelRequested, at_ms=moments, queue=text, ids=id_lists
    ),
    entries.JobsRetried: jobs_retried(),
    entries.JobsAgedOut: st.builds(
        replace, of_ended(entries.JobsAgedOut), delete_after_ms=st.integers(0, 2**40)
    ),
    entries.JobsDeleted: of_ended(entries.JobsDeleted),
    **GROUP_FACTS,
    **SHARD_FACTS,
}
"""A strategy for each fact."""

facts = st.one_of(*FACTS.values())
