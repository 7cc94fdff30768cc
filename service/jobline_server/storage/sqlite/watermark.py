"""The watermark: the last acknowledged commit of each shard, in the small file `promise`.

SQLite stops reading a WAL at the first frame with a bad checksum and silently drops everything
after it: one flipped bit can undo acknowledged commits. So after the fsync of each commit, before
any reply, its epoch, offset, chain and id ceiling are also written here. That needs no fsync: the
commit was durable before, so the watermark is never ahead of the store, and a start that finds less
than it refuses.

Each shard has two slots with checksums, used in turn by odd and even offsets: a write that is cut
off tears one of them, and the other still has the commit before.

The file is written through a memory map, without a system call: for one the commit thread would
have to release Python's lock, and wait for it again.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path

from jobline_server.storage.recovery_cases import CommitMark, Unreadable
from jobline_server.storage.sqlite.files import sync_directory

# The format: a header, then two slots per shard, each within one sector of any disk. To change it,
# change the magic, and keep reading the old one.
_MAGIC = b"JLPROM1\n"
_HEADER = struct.Struct("<8sII48x")  # magic, shards, crc32 of both
_BODY = struct.Struct("<QQQI32x")  # epoch, offset, id ceiling, chain
_CHECKSUM = struct.Struct("<I")
_SLOT_BYTES = _BODY.size + _CHECKSUM.size
_NEVER_WRITTEN = bytes(_SLOT_BYTES)


class WatermarkFile:
    """The mapped file. A file that we did not write is not mapped; it can only be renewed."""

    def __init__(self, file: Path, shards: int) -> None:
        """Opens the file, or makes it; a damaged or foreign one is left as it is until `renew`."""
        self._file = file
        self._shards = shards
        self._size = _HEADER.size + 2 * shards * _SLOT_BYTES
        if not file.exists():
            self._make()
        self._map: mmap.mmap | None = self._mapped() if self._is_ours() else None

    def read(self, shard: int) -> CommitMark | Unreadable | None:
        """Returns the mark of a shard, None if there is none."""
        if self._map is None:
            return Unreadable.UNREADABLE
        return mark_in(self._map, shard)

    def keep(self, shard: int, epoch: int, offset: int, chain: int, id_ceiling: int) -> None:
        """Writes the mark of a commit that is durable."""
        body = _BODY.pack(epoch, offset, id_ceiling, chain)
        start = _start(shard, offset & 1)
        self._mapping[start : start + _SLOT_BYTES] = body + _CHECKSUM.pack(zlib.crc32(body))

    def renew(self, shard: int) -> None:
        """Deletes the mark of a shard, after its loss was accepted."""
        if self._map is None:
            self._file.unlink()
            self._make()
            self._map = self._mapped()
        start = _start(shard, 0)
        self._mapping[start : start + 2 * _SLOT_BYTES] = _NEVER_WRITTEN * 2

    def sync(self) -> None:
        """Makes the file durable. Only used after an opening; commits do without."""
        if self._map is not None:
            self._map.flush()

    def close(self) -> None:
        """Writes back and closes; may be called twice."""
        if self._map is not None:
            self._map.flush()
            self._map.close()
            self._map = None

    @property
    def _mapping(self) -> mmap.mmap:
        if self._map is None:
            raise RuntimeError("the watermark is closed, or unreadable and must be renewed first")
        return self._map

    def _is_ours(self) -> bool:
        return is_whole(self._file.read_bytes(), self._shards)

    def _make(self) -> None:
        # Written under another name first, so that the file is whole or not there; and written, not
        # only allocated, because a mapped page that finds no room kills the process (SIGBUS).
        draft = self._file.with_name(self._file.name + ".new")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, _header(self._shards) + bytes(self._size - _HEADER.size))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.rename(self._file)
        sync_directory(self._file.parent)

    def _mapped(self) -> mmap.mmap:
        with self._file.open("r+b") as file:
            return mmap.mmap(file.fileno(), self._size)


def is_whole(content: bytes, shards: int) -> bool:
    """Returns whether this is the content of a watermark file of so many shards."""
    size = _HEADER.size + 2 * shards * _SLOT_BYTES
    return len(content) == size and content[: _HEADER.size] == _header(shards)


def mark_in(content: bytes | mmap.mmap, shard: int) -> CommitMark | Unreadable | None:
    """Returns the mark of a shard in the content of a whole file, None if there is none."""
    slots = [_slot(content, shard, turn) for turn in (0, 1)]
    watermarks = [slot for slot in slots if isinstance(slot, CommitMark)]
    if watermarks:
        return max(watermarks, key=lambda watermark: (watermark.epoch, watermark.offset))
    return Unreadable.UNREADABLE if Unreadable.UNREADABLE in slots else None


def _header(shards: int) -> bytes:
    counted = struct.pack("<8sI", _MAGIC, shards)
    return _HEADER.pack(_MAGIC, shards, zlib.crc32(counted))


def _start(shard: int, turn: int) -> int:
    return _HEADER.size + (2 * shard + turn) * _SLOT_BYTES


def _slot(content: bytes | mmap.mmap, shard: int, turn: int) -> CommitMark | Unreadable | None:
    start = _start(shard, turn)
    slot = content[start : start + _SLOT_BYTES]
    if slot == _NEVER_WRITTEN:
        return None
    body, checksum = slot[: _BODY.size], slot[_BODY.size :]
    if _CHECKSUM.unpack(checksum)[0] != zlib.crc32(body):
        return Unreadable.UNREADABLE
    epoch, offset, id_ceiling, chain = _BODY.unpack(body)
    return CommitMark(epoch=epoch, offset=offset, chain=chain, id_ceiling=id_ceiling)
