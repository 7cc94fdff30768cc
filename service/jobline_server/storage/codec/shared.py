"""What many decoded things have: options and payloads.

Options are shared: the same bytes become the same object. The engine and the shelf compare options
by identity, so a million recovered jobs of one kind must hold one `JobOptions`, as they did when
they were pushed.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import entry_pb2, job_pb2
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


def payloads_of(block: bytes, count: int, *, skipped: int = 0) -> Payloads:
    """The payloads of a block; the first `skipped` ones are not in it."""
    return Payloads(block, count, _lengths(block), skipped=skipped)


def _lengths(block: bytes) -> Iterator[int]:
    yield from map(len, entry_pb2.PayloadBlock.FromString(block).payloads)
