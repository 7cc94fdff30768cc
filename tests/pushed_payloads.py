"""Payloads with headers and keys of their own, as tests write and draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.commands import Push
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import JobOptions
from tests.pushed_rows import NewJob, jobs_of

NO_HEADERS: Mapping[str, Sequence[str]] = {}
# Texts of no, one and more bytes a character.
texts = st.sampled_from(["", "", "v", "wide", "é", "00-4bf92f3577b34da6a3ce929d0e0e4736-01"])


def packed(values: Sequence[str]) -> PackedValues:
    """A column of texts."""
    return PackedValues.of([value.encode() for value in values])


def payloads_of(
    payloads: Sequence[bytes],
    headers: Mapping[str, Sequence[str]] = NO_HEADERS,
    job_keys: Sequence[str] = (),
) -> Payloads:
    """Payloads, and beside them columns of headers and of keys, if there are any."""
    made = Payloads.of(payloads)
    if headers or job_keys:
        columns = [(key, packed(values)) for key, values in headers.items()]
        made.columns = LotColumns(columns, packed(job_keys) if job_keys else None)
    return made


@st.composite
def with_columns(draw: st.DrawFn, payloads: list[bytes]) -> Payloads:
    """These payloads, often with columns."""
    if not payloads or draw(st.booleans()):
        return Payloads.of(payloads)
    count = len(payloads)
    column = st.lists(texts, min_size=count, max_size=count)
    headers = draw(st.dictionaries(st.sampled_from(["a", "trace", "x"]), column, max_size=2))
    # A key mostly goes with a payload, so that most that come again are duplicates.
    keys = [draw(st.sampled_from(["", "", f"ключ {one!r}", "k1"])) for one in payloads]
    return payloads_of(payloads, headers, keys if any(keys) else ())


def options_of(payloads: Payloads, index: int, shared: JobOptions) -> JobOptions:
    """The options of one job, the slow way."""
    headers = dict(shared.headers)
    for key, values in payloads.columns.headers if payloads.columns else ():
        value = list(values)[index - values.skipped].decode()
        headers |= {key: value} if value else {}
    return JobOptions(
        **{
            name: getattr(shared, name)
            for name in JobOptions.__dataclass_fields__
            if name != "headers"
        },
        headers=tuple(sorted(headers.items())),
    )


def jobs_in(push: Push) -> list[NewJob]:
    """All jobs of a push, one by one."""
    payloads = push.payloads
    plain = [
        NewJob(
            payload,
            options_of(payloads, index, push.options),
            payloads.job_key_of(index),
            push.run_at_ms,
            payloads.bytes_of(index, 1) - len(payload),
        )
        for index, payload in enumerate(payloads)
    ]
    return [*jobs_of(push.rows), *plain]
