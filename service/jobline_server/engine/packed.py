"""Packed values: one value per job of a lot in one block of bytes, without an object per value.

    header value header value …

The block is the bytes of the push, and is written unchanged to the journal, the checkpoint and the
worker. The header of a value is a tag and its length as a varint, as protobuf encodes the elements
of a `repeated bytes` or `string` field (https://protobuf.dev/programming-guides/encoding/). If all
values have one length, which comparing a few columns of the block shows, nothing is kept beside
it; otherwise 8 bytes per value hold the offset of its header and the bytes of the values before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Self

# The number of the repeated field in every message that is, or holds, a block.
FIELD = 4
_LENGTH_DELIMITED = 2
_TAG = bytes([FIELD << 3 | _LENGTH_DELIMITED])


class PackedValues:
    """Values by index. The first `skipped` indexes have no value any more."""

    __slots__ = ("_begins", "_count", "_header_bytes", "_sums", "block", "bytes_max", "skipped")

    def __init__(
        self, block: bytes, count: int, lengths: Iterable[int], *, skipped: int = 0
    ) -> None:
        """Wraps the `count` values of a block; `lengths` is iterated only if they differ."""
        self.block = block
        self.skipped = skipped
        self._count = count
        # Offsets of headers, and bytes of the values before each, with one entry more than there
        # are values. Both are None if all values have one length.
        self._begins: array[int] | None = None
        self._sums: array[int] | None = None
        one_length = _length_of_one(block) if count == 1 else _one_length(block, count)
        if one_length is not None:
            self.bytes_max = one_length
            self._header_bytes = len(header_of(one_length))
            return
        sizes = list(lengths)
        self.bytes_max = max(sizes)
        self._header_bytes = 0
        whole = [len(header_of(size)) + size for size in sizes]
        self._begins = array("I", accumulate(whole, initial=0))
        self._sums = array("I", accumulate(sizes, initial=0))

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Self:
        """Packs values into a block."""
        block = b"".join([header_of(len(value)) + value for value in values])
        return cls(block, len(values), map(len, values))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenates several blocks."""
        lengths = map(len, chain.from_iterable(parts))
        return cls(b"".join([part.block for part in parts]), sum(map(len, parts)), lengths)

    @property
    def is_even(self) -> bool:
        """Whether all values have one length, which is then `bytes_max`."""
        return self._sums is None

    @property
    def sums(self) -> array[int] | None:
        """Returns the bytes of the values before each one that is there, and of all at its end;
        None if all have one length.
        """
        return self._sums

    @property
    def block_bytes_max(self) -> int:
        """Bytes of the longest value in the block, with its header."""
        return len(header_of(self.bytes_max)) + self.bytes_max

    def __len__(self) -> int:
        return self.skipped + self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedValues):
            return NotImplemented
        return (self.block, self._count, self.skipped) == (other.block, other._count, other.skipped)

    def __hash__(self) -> int:
        return hash((self.block, self._count, self.skipped))

    def __repr__(self) -> str:
        return f"<{self._count} values, {len(self.block)} bytes>"

    def __getitem__(self, index: int) -> bytes:
        at = index - self.skipped
        if not 0 <= at < self._count:
            raise IndexError(index)
        if self._begins is None or self._sums is None:
            end = (at + 1) * (self._header_bytes + self.bytes_max)
            return self.block[end - self.bytes_max : end]
        end = self._begins[at + 1]
        return self.block[end - self._sums[at + 1] + self._sums[at] : end]

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over the values from index `skipped` on."""
        block = self.block
        if self._begins is None or self._sums is None:
            size = self.bytes_max
            stride = self._header_bytes + size
            ends = range(stride, len(block) + 1, stride)
            return iter([block[end - size : end] for end in ends])
        sizes = [after - before for before, after in pairwise(self._sums)]
        ends_and_sizes = zip(self._begins[1:], sizes, strict=True)
        return iter([block[end - size : end] for end, size in ends_and_sizes])

    def part(self, start: int, count: int) -> Self:
        """Returns `count` neighbours from index `start` on, with indexes from 0."""
        if count == self._count and not self.skipped:
            return self
        block = self.block_of(start, count)
        return type(self)(block, count, () if self.is_even else self.sizes_of(start, count))

    def block_of(self, start: int, count: int) -> bytes:
        """Returns the bytes of neighbours as they are in the block, without looking at them."""
        if count == self._count and not self.skipped:
            return self.block
        at = start - self.skipped
        if self._begins is None:
            stride = self._header_bytes + self.bytes_max
            return self.block[at * stride : (at + count) * stride]
        return self.block[self._begins[at] : self._begins[at + count]]

    def sizes_of(self, start: int, count: int) -> list[int]:
        """Returns the bytes of each of some neighbours."""
        if self._sums is None:
            return [self.bytes_max] * count
        at = start - self.skipped
        sums = self._sums[at : at + count + 1]
        return [after - before for before, after in pairwise(sums)]

    def rest(self, start: int) -> Self:
        """Returns the values from index `start` on, at their old indexes."""
        if start <= self.skipped:
            return self
        # Not `self.part`: a subclass cuts its own fields in its own `rest`.
        left = PackedValues.part(self, start, len(self) - start)
        return type(self)(left.block, len(left), map(len, left), skipped=start)

    def size_of(self, index: int) -> int:
        """Returns the bytes of one value."""
        if self._sums is None:
            return self.bytes_max
        at = index - self.skipped
        return self._sums[at + 1] - self._sums[at]

    def block_bytes_of(self, start: int, count: int) -> int:
        """Returns the bytes of neighbours in the block, with their headers."""
        if self._begins is None:
            return count * (self._header_bytes + self.bytes_max)
        at = start - self.skipped
        return self._begins[at + count] - self._begins[at]


def _length_of_one(block: bytes) -> int:
    """Returns the length of the only value of a block."""
    at = 1
    while block[at] > 0x7F:
        at += 1
    return len(block) - at - 1


def _one_length(block: bytes, count: int) -> int | None:
    """Returns the length of every value if all have the same, otherwise None.

    If the block divides into `count` equal strides that all begin with the header of a value of
    that stride, the first value ends where the second begins, and so on.
    """
    if not count:
        return 0
    stride, over = divmod(len(block), count)
    if over:
        return None
    header = _header_of_stride(stride)
    if not header:
        return None
    for column, byte in enumerate(header):
        if block[column::stride].count(byte) != count:
            return None
    return stride - len(header)


@lru_cache(maxsize=4_096)
def header_of(size: int) -> bytes:
    """Returns the header of a value of this length."""
    header = bytearray(_TAG)
    rest = size
    while rest > 0x7F:
        header.append(rest & 0x7F | 0x80)
        rest >>= 7
    header.append(rest)
    return bytes(header)


@lru_cache(maxsize=4_096)
def _header_of_stride(stride: int) -> bytes:
    """Returns the header of a value that takes `stride` bytes with its header; b"" if none does."""
    for header_bytes in range(2, 8):
        header = header_of(max(stride - header_bytes, 0))
        if len(header) == header_bytes <= stride:
            return header
    return b""
