"""Splits the payloads of a push into lots: large jobs have lanes of their own."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.lane import SMALL_BYTES
from jobline_server.engine.payloads import Payloads


def lots_of(payloads: Payloads, first_id: int) -> list[tuple[int, Payloads]]:
    """Returns the lots to make of payloads, with their first ids."""
    if payloads.bytes_max <= SMALL_BYTES:
        return [(first_id, payloads)] if payloads else []
    lots: list[tuple[int, Payloads]] = []
    for of_lot in _by_size(payloads):
        lots.append((first_id, of_lot))
        first_id += len(of_lot)
    return lots


def _by_size(payloads: Payloads) -> Iterator[Payloads]:
    """Splits payloads into lots: each large one is a lot; neighbours between them share one."""
    start = 0
    for index in range(len(payloads)):
        if payloads.size_of(index) > SMALL_BYTES:
            if start < index:
                yield payloads.part(start, index - start)
            yield payloads.part(index, 1)
            start = index + 1
    if start < len(payloads):
        yield payloads.part(start, len(payloads) - start)
