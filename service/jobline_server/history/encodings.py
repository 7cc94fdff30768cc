"""Parquet's encodings of numbers, made of runs of values without visiting each value.

A lot of a thousand jobs is one run in nearly each column: what costs time here is a run, or a block
of 128 values with something unusual in it, not a row. The formats are those of
https://parquet.apache.org/docs/file-format/data-pages/encodings/.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jobline_server.wire.raw_fields import varint

# The widths in bits in which values are packed; these are whole bytes, which need no shifting.
WIDTHS = (8, 16, 32)
BLOCK, MINIBLOCKS = 128, 4
_MINIBLOCK = BLOCK // MINIBLOCKS
_VARINT_BYTES, _HEADER_BYTES = 10, 5
_ALL_BITS = (1 << 64) - 1
# Of so many values one, or more, follows another than the one before it: the ids of jobs that were
# acked in any order. Lots have far fewer.
_MANY = 8
# A block of differences that are all 1: the smallest, 1, as a zigzag varint, and four widths of 0.
_ALL_ONES = np.array([2, 0, 0, 0, 0], np.uint8)


_FIRST = np.zeros(1, np.int64)


def zigzag(number: int) -> int:
    """Returns a signed number as an unsigned one that is small if the number is near 0."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def varints(numbers: Any, bytes_max: int = _VARINT_BYTES) -> tuple[Any, Any]:
    """Encodes unsigned numbers: a row of bytes each, and how many of these count."""
    shifted = numbers[:, None] >> (np.arange(bytes_max, dtype=np.uint64) * np.uint64(7))
    lengths = np.maximum((shifted != 0).sum(1), 1)
    more = np.arange(bytes_max) < lengths[:, None] - 1
    return ((shifted & np.uint64(0x7F)) | (more * np.uint64(0x80))).astype(np.uint8), lengths


def one_run(value: int, count: int, width: int) -> bytes:
    """Encodes `count` times one value, as `hybrid` does."""
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little") if count else b""


def hybrid(values: Any, counts: Any, width: int) -> bytes:
    """Encodes `counts[i]` times `values[i]`, for each i, as runs or packed, whatever is shorter."""
    if len(values) > 1:
        heads = np.flatnonzero(values[1:] != values[:-1]) + 1
        heads = np.concatenate((_FIRST, heads))
        values, counts = values[heads], np.add.reduceat(counts, heads)
    if len(values) <= 1:
        return one_run(int(values[0]), int(counts[0]), width) if len(values) else b""
    value_bytes = (width + 7) // 8
    if len(values) * (2 + value_bytes) * 8 <= int(counts.sum()) * width:
        return _in_runs(values, counts, value_bytes)
    return _packed(np.repeat(values, counts), width)


def _in_runs(values: Any, counts: Any, value_bytes: int) -> bytes:
    heads, lengths = varints(counts.astype(np.uint64) << np.uint64(1), _HEADER_BYTES)
    own = values.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :value_bytes]
    counted = np.arange(_HEADER_BYTES) < lengths[:, None]
    is_used = np.hstack((counted, np.ones(own.shape, np.bool_)))
    return bytes(np.hstack((heads, own))[is_used])


def _packed(values: Any, width: int) -> bytes:
    groups = -(-len(values) // 8)
    if width < 8:
        bits = (values[:, None] >> np.arange(width)) & 1
        content = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    else:
        content = values.astype(f"<u{width // 8}").tobytes()
    return varint(groups << 1 | 1) + content.ljust(groups * width, b"\0")


def width_of(distinct: int) -> int:
    """Returns the bits that the index of one of so many values is given."""
    return next(width for width in WIDTHS if distinct <= 1 << width)


def counting(starts: Any, counts: Any = None) -> bytes:
    """Encodes `starts[i], starts[i] + 1, …`, `counts[i]` of them, for each i, as differences
    (DELTA_BINARY_PACKED). `counts` None: one of each.
    """
    total = len(starts) if counts is None else int(counts.sum())
    first = int(starts[0]) if total else 0
    header = varint(BLOCK) + varint(MINIBLOCKS) + varint(total) + varint(zigzag(first))
    if total < 2:
        return header
    # Where a run begins the difference is another than 1.
    if counts is None:
        at, steps = None, np.diff(starts)
    else:
        at = np.cumsum(counts, dtype=np.int64)[:-1] - 1
        steps = starts[1:] - (starts[:-1] + counts[:-1] - 1)
    unusual = np.flatnonzero(steps != 1)
    if len(unusual) * _MANY <= total:
        return header + _each(total - 1, unusual if at is None else at[unusual], steps[unusual])
    return header + _alike(total - 1, at, steps)


def _alike(total: int, at: Any, steps: Any) -> bytes:
    """Encodes as `_each`, with one smallest difference and one width for all blocks: a tenth of the
    time, and up to twice the bytes, where each block has unusual ones. `at` None: all are `steps`.
    """
    least, most = int(steps.min()), int(steps.max())
    if at is not None:
        least, most = min(least, 1), max(most, 1)
    width = max(int(_byte_widths(np.uint64(most - least))), 1)
    kind = f"<u{width}"
    # As unsigned numbers: the largest difference of two signed ones needs all 64 bits.
    over = (steps.view(np.uint64) - np.uint64(least & _ALL_BITS)).astype(kind)
    count = -(-total // BLOCK)
    packed = np.zeros(count * BLOCK, kind)
    if at is None:
        packed[:total] = over
    else:
        packed[:total] = 1 - least
        packed[at] = over
    head = np.frombuffer(varint(zigzag(least)) + bytes((width * 8,)) * MINIBLOCKS, np.uint8)
    out = np.empty((count, len(head) + BLOCK * width), np.uint8)
    out[:, : len(head)] = head
    out[:, len(head) :] = packed.view(np.uint8).reshape(count, BLOCK * width)
    # What is beyond the end of the last block takes no room.
    used = -(-(total - (count - 1) * BLOCK) // _MINIBLOCK)
    unused = MINIBLOCKS - used
    out[-1, len(head) - unused : len(head)] = 0
    return out.reshape(-1)[: out.size - unused * _MINIBLOCK * width].tobytes()


def _each(total: int, at: Any, steps: Any) -> bytes:
    """Encodes so many differences: those `at` these places are `steps`, all others 1."""
    count = -(-total // BLOCK)
    blocks = at // BLOCK
    is_first = np.diff(blocks, prepend=-1) > 0
    numbers, rows = blocks[is_first], np.cumsum(is_first) - 1
    steps_of = np.ones((len(numbers), BLOCK), np.int64)
    steps_of[rows, at % BLOCK] = steps
    least = steps_of.min(1)
    if len(numbers) and numbers[-1] == count - 1:
        # What is beyond the end of the last block takes no room.
        steps_of[-1, total - (count - 1) * BLOCK :] = least[-1]
    # As unsigned numbers: the largest difference of two signed ones needs all 64 bits.
    over = steps_of.view(np.uint64) - least.view(np.uint64)[:, None]
    widths = _byte_widths(over.reshape(-1, MINIBLOCKS, _MINIBLOCK).max(2))
    signs = (least >> np.int64(63)).view(np.uint64)
    heads, lengths = varints((least.view(np.uint64) << np.uint64(1)) ^ signs)
    sizes = np.full(count, len(_ALL_ONES))
    sizes[numbers] = lengths + MINIBLOCKS + widths.sum(1) * _MINIBLOCK
    ends = np.cumsum(sizes)
    out = np.zeros(int(ends[-1]), np.uint8)
    begins = ends - sizes
    out[begins] = _ALL_ONES[0]
    begins = begins[numbers]
    is_used = np.arange(_VARINT_BYTES) < lengths[:, None]
    out[(begins[:, None] + np.arange(_VARINT_BYTES))[is_used]] = heads[is_used]
    begins += lengths
    out[begins[:, None] + np.arange(MINIBLOCKS)] = widths * 8
    miniblocks = (begins + MINIBLOCKS)[:, None] + (np.cumsum(widths, 1) - widths) * _MINIBLOCK
    over = over.reshape(-1, MINIBLOCKS, _MINIBLOCK)
    for width in (1, 2, 4, 8):
        own = widths == width
        packed = over[own].astype(f"<u{width}").view(np.uint8)
        out[miniblocks[own][:, None] + np.arange(packed.shape[1])] = packed
    return bytes(out)


def _byte_widths(largest: Any) -> Any:
    """Returns in how many bytes numbers up to these fit: 0, 1, 2, 4 or 8."""
    bounds = np.array([1, 1 << 8, 1 << 16, 1 << 32], np.uint64)
    return np.array([0, 1, 2, 4, 8])[np.searchsorted(bounds, largest, "right")]
