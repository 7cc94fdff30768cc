"""What many decoded things have: options, payloads, and columns beside those.

Options are shared: the same bytes become the same object. The engine and the ended buffer compare
options by identity, so a million recovered jobs of one kind must hold one `JobOptions`, as they did
when they were pushed.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import entry_pb2, job_pb2, store_pb2
from jobline_server.engine.columns import LotColumns
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.wire.options import options_from_message

# Options with a trace context of their own are all different: what is remembered has a bound, over
# which everything is forgotten. An object that is made twice costs memory, and nothing else.
INTERNED_MAX = 16_384
INTERNED_BYTES_MAX = 2_048

_interned: dict[bytes, JobOptions] = {b"": DEFAULT_OPTIONS}


def interned_options(serialized: bytes) -> JobOptions:
    """The value of serialized options; the same object for the same bytes."""
    options = _interned.get(serialized)
    if options is not None:
        return options
    options = options_from_message(job_pb2.JobOptions.FromString(serialized))
    if len(serialized) <= INTERNED_BYTES_MAX:
        if len(_interned) >= INTERNED_MAX:
            _interned.clear()
            _interned[b""] = DEFAULT_OPTIONS
        _interned[serialized] = options
    return options


HasPayloads = (
    entry_pb2.LotPushed
    | store_pb2.StoredLot
    | store_pb2.StoredLotPayloads
    | store_pb2.StoredRun
    | store_pb2.PushJobs
)
"""Messages that keep payloads of a lot, and what stands beside them."""


def fill_payloads(message: HasPayloads, payloads: Payloads) -> None:
    """Writes payloads and their columns into a message."""
    message.payload_block = payloads.block
    fill_columns(message, payloads)


def fill_columns(message: HasPayloads, payloads: Payloads) -> None:
    """Writes what stands beside payloads into a message."""
    if payloads.columns is not None:
        _fill_columns(message.columns, payloads.columns)


def payloads_of(message: HasPayloads, count: int, *, skipped: int = 0) -> Payloads:
    """The payloads in a message; the first `skipped` ones are not in it."""
    block = message.payload_block
    columns = None
    if message.HasField("columns"):
        columns = _columns_of(message.columns, count, skipped)
    return Payloads(block, count, _lengths(block), skipped=skipped, columns=columns)


def _fill_columns(message: store_pb2.StoredColumns, columns: LotColumns) -> None:
    for key, values in columns.headers:
        column = message.headers.add()
        column.key = key
        column.value_block = values.block
    if columns.job_keys is not None:
        message.job_key_block = columns.job_keys.block


def _columns_of(message: store_pb2.StoredColumns, count: int, skipped: int) -> LotColumns:
    def packed(block: bytes) -> PackedValues:
        return PackedValues(block, count, _lengths(block), skipped=skipped)

    keys = packed(message.job_key_block) if message.job_key_block else None
    return LotColumns(
        [(column.key, packed(column.value_block)) for column in message.headers], keys
    )


def _lengths(block: bytes) -> Iterator[int]:
    yield from map(len, entry_pb2.PayloadBlock.FromString(block).payloads)
