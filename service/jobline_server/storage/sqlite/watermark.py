"""The promise: the last acknowledged commit of each shard, in a small file beside the database.

SQLite stops reading a WAL at the first frame with a bad checksum and drops everything after it, in
silence: one rotten bit undoes acknowledged commits. So after each commit (after its fsync, before
anyone is answered) its epoch, offset, chain and id ceiling are written here too. They need no
fsync: what is here was durable before, so the promise is never ahead of the truth, and a start that
finds less than promised refuses.

Each shard has two slots with checksums, used in turn by odd and even offsets: a write that is cut
off tears one of them, and the other still says the commit before.

The file is written through a memory map, which enters no system call: the commit thread would have
to give up Python's lock for one, and wait to get it back.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path

from jobline_server.storage.recovery_cases import CommitMark, Unreadable
from jobline_server.storage.sqlite.files import sync_directory

# The format: a header, then two slots a shard, each within one sector of any disk. To change it,
# change the magic, and go on reading the old one.
_MAGIC = b"JLPROM1\n"
_HEADER = struct.Struct("<8sII48x")  # magic, shards, crc32 of both
_BODY = struct.Struct("<QQQI32x")  # epoch, offset, id ceiling, chain
_CHECKSUM = struct.Struct("<I")
_SLOT_BYTES = _BODY.size + _CHECKSUM.size
_NEVER_WRITTEN = bytes(_SLOT_BYTES)


class WatermarkFile:
    """The file, mapped; unless it is not what we wrote, then it can only be renewed."""

    def __init__(self, file: Path, shards: int) -> None:
        """Opens the file, or makes it; a torn or foreign one is kept as it is until `renew`."""
        self._file = file
        self._shards = shards
        self._size = _HEADER.size + 2 * shards * _SLOT_BYTES
        if not file.exists():
            self._make()
        self._map: mmap.mmap | None = self._mapped() if self._is_ours() else None

    def read(self, shard: int) -> CommitMark | Unreadable | None:
        """What was promised for a shard; None if nothing was."""
        if self._map is None:
            return Unreadable.UNREADABLE
        slots = [self._slot(shard, turn) for turn in (0, 1)]
        promises = [slot for slot in slots if isinstance(slot, CommitMark)]
        if promises:
            return max(promises, key=lambda promise: (promise.epoch, promise.offset))
        return Unreadable.UNREADABLE if Unreadable.UNREADABLE in slots else None

    def keep(self, shard: int, epoch: int, offset: int, chain: int, id_ceiling: int) -> None:
        """Writes down a commit that is durable."""
        body = _BODY.pack(epoch, offset, id_ceiling, chain)
        start = self._start(shard, offset & 1)
        self._mapping[start : start + _SLOT_BYTES] = body + _CHECKSUM.pack(zlib.crc32(body))

    def renew(self, shard: int) -> None:
        """Forgets what was promised for a shard, after its loss was accepted."""
        if self._map is None:
            self._file.unlink()
            self._make()
            self._map = self._mapped()
        start = self._start(shard, 0)
        self._mapping[start : start + 2 * _SLOT_BYTES] = _NEVER_WRITTEN * 2

    def sync(self) -> None:
        """Makes it durable. Only useful after an opening; commits do without."""
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
            raise RuntimeError("the promise is closed, or unreadable and must be renewed first")
        return self._map

    def _start(self, shard: int, turn: int) -> int:
        return _HEADER.size + (2 * shard + turn) * _SLOT_BYTES

    def _slot(self, shard: int, turn: int) -> CommitMark | Unreadable | None:
        start = self._start(shard, turn)
        slot = self._mapping[start : start + _SLOT_BYTES]
        if slot == _NEVER_WRITTEN:
            return None
        body, checksum = slot[: _BODY.size], slot[_BODY.size :]
        if _CHECKSUM.unpack(checksum)[0] != zlib.crc32(body):
            return Unreadable.UNREADABLE
        epoch, offset, id_ceiling, chain = _BODY.unpack(body)
        return CommitMark(epoch=epoch, offset=offset, chain=chain, id_ceiling=id_ceiling)

    def _header(self) -> bytes:
        counted = struct.pack("<8sI", _MAGIC, self._shards)
        return _HEADER.pack(_MAGIC, self._shards, zlib.crc32(counted))

    def _is_ours(self) -> bool:
        content = self._file.read_bytes()
        return len(content) == self._size and content[: _HEADER.size] == self._header()

    def _make(self) -> None:
        # Written under another name first, so that there is a whole file or none; and really
        # written, not only allocated, because a mapped page that finds no room kills the process
        # (SIGBUS).
        draft = self._file.with_name(self._file.name + ".new")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, self._header() + bytes(self._size - _HEADER.size))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.rename(self._file)
        sync_directory(self._file.parent)

    def _mapped(self) -> mmap.mmap:
        with self._file.open("r+b") as file:
            return mmap.mmap(file.fileno(), self._size)
