"""Reads the columns beside the payloads of a push: headers by key, and idempotency keys.

A column goes on as the block of bytes that it came as. Texts are checked a column at a time: the
longest value, and all of them joined. Single values are looked at only where that is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobline.v1 import entry_pb2, job_pb2
from jobline_server.engine import limits
from jobline_server.engine.columns import LotColumns
from jobline_server.engine.commands import Refused
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.values import JobOptions
from jobline_server.rpc.limits import COLUMN_VALUES_MAX
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields

# In UTF-8.
_BYTES_A_CHARACTER_MAX = 4


def columns_of(
    header_columns: Sequence[job_pb2.HeaderColumn],
    job_keys: Sequence[str],
    count: int,
    shared: JobOptions,
) -> LotColumns | None:
    """Returns what the `count` payloads of a push have beside them, or None if that is nothing.
    Clears the keys of the columns.
    """
    fields.at_most(header_columns, "header_columns", limits.HEADERS_MAX)
    fields.at_most(job_keys, "job_keys", limits.PUSH_JOBS_MAX)
    if len(header_columns) * count > COLUMN_VALUES_MAX:
        raise fields.too_large(
            "header_columns", f"must have at most {COLUMN_VALUES_MAX} values together"
        )
    keys = _packed_keys(list(job_keys), count)
    texts: dict[str, list[str]] = {}
    headers: list[tuple[str, PackedValues]] = []
    for index, column in enumerate(header_columns):
        try:
            key, values = _checked(column, count)
            if key in texts:
                raise fields.invalid("key", "has a column already")
        except Refused as refused:
            raise fields.within(f"header_columns[{index}]", refused) from None
        texts[key] = values
        if any(values):
            headers.append((key, _packed(column, len(values))))
    _check_together(dict(shared.headers), texts, count)
    return LotColumns(headers, keys) if headers or keys is not None else None


def check_keys(keys: Sequence[str], field: str, bytes_max: int = limits.JOB_KEY_BYTES_MAX) -> None:
    """Checks keys at once; `field` has {} where the index goes."""
    joined = "".join(keys)
    if max(map(len, keys)) <= bytes_max and joined.isascii() and joined.isprintable():
        return
    for index, key in enumerate(keys):
        fields.key(key, field.format(index), bytes_max)


def _packed_keys(keys: list[str], count: int) -> PackedValues | None:
    if not keys:
        return None
    check_count(len(keys), count, "job_keys")
    check_keys(keys, "job_keys[{}]")
    return _packed(job_pb2.HeaderColumn(values=keys), len(keys)) if any(keys) else None


def _checked(column: job_pb2.HeaderColumn, count: int) -> tuple[str, list[str]]:
    """Returns the key and the values of a column."""
    check_own_fields(column)
    listed = column.values
    fields.at_most(listed, "values", limits.PUSH_PAYLOADS_MAX)
    key = fields.required_line(column.key, "key", limits.HEADERS_BYTES_MAX)
    check_count(len(listed), count, "values")
    values = list(listed)
    fields.single_lines(values, "values", limits.HEADERS_BYTES_MAX)
    return key, values


def check_count(values: int, payloads: int, field: str) -> None:
    """Refuses a column that has not one value per payload."""
    if not payloads:
        raise fields.invalid(field, "stands beside payloads only")
    if values != payloads:
        raise fields.invalid(field, f"must be as many as payloads, {payloads}, and are {values}")


def _packed(column: job_pb2.HeaderColumn, count: int) -> PackedValues:
    """Returns the values of a column, which loses all else, so that it is their block."""
    column.ClearField("key")
    column.DiscardUnknownFields()
    block = column.SerializeToString()
    return PackedValues(block, count, _lengths(block))


def _lengths(block: bytes) -> Iterator[int]:
    """Yields lengths in bytes, which texts do not say; asked for only where they differ."""
    yield from map(len, entry_pb2.PayloadBlock.FromString(block).payloads)


def _check_together(shared: Mapping[str, str], texts: Mapping[str, list[str]], count: int) -> None:
    """Checks the limits of headers for each job: its own and the shared ones together."""
    keys = list(map(len, map(str.encode, texts)))
    if sum(keys) > limits.HEADERS_BYTES_MAX:
        raise fields.invalid(
            "header_columns", f"keys must be at most {limits.HEADERS_BYTES_MAX} bytes together"
        )
    bound = _bytes_of(shared) + sum(keys)
    bound += _BYTES_A_CHARACTER_MAX * sum(max(map(len, values)) for values in texts.values())
    if (
        len(shared.keys() | texts.keys()) <= limits.HEADERS_MAX
        and bound <= limits.HEADERS_BYTES_MAX
    ):
        return
    sizes, numbers = [_bytes_of(shared)] * count, [len(shared)] * count
    for key, values in texts.items():
        # An own value takes the place of the shared one.
        beside = -len(shared[key].encode()) if key in shared else len(key.encode())
        lengths = list(map(len, map(str.encode, values)))
        of_each = zip(sizes, lengths, strict=True)
        sizes = [size + beside + length if length else size for size, length in of_each]
        if key not in shared:
            numbers = [number + bool(own) for number, own in zip(numbers, lengths, strict=True)]
    for index, (size, number) in enumerate(zip(sizes, numbers, strict=True)):
        if size > limits.HEADERS_BYTES_MAX or number > limits.HEADERS_MAX:
            raise fields.invalid(
                "header_columns",
                f"payloads[{index}] has {number} headers of {size} bytes; a job may have "
                f"{limits.HEADERS_MAX} of {limits.HEADERS_BYTES_MAX} bytes together",
            )


def _bytes_of(headers: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in headers.items())
