"""The codec: payloads, results and checkpoints that only those can read who have the keys.

    ring = KeyMap({"tenant-7": key}, current=lambda group: group)
    client = Client(codec=Codec(ring))
    worker = Worker(codec=Codec(ring))

Dropping a key from the ring erases all that was sealed with it, wherever it is kept. With
encryption it needs `pip install 'jobline[codec]'`; without a ring it only compresses.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Protocol

from jobline._base_errors import CodecError, InvalidArgument, KeyErased
from jobline._leased import LeasedJob
from jobline._options import with_headers
from jobline._push.push_middleware import Outgoing
from jobline._sealed_frames import (
    INFLATED_BYTES_MAX,
    KEY_BYTES,
    SEALED,
    Opened,
    is_frame,
    open_frame,
    seal,
)

__all__ = ["KEY_HEADER", "Codec", "KeyMap", "KeyRing"]

# Limits of the server, for frames too.
RESULT_BYTES_MAX = 1 << 20
REPORT_BYTES_MAX = 64 << 10

KEY_HEADER = "jobline-key"
"""Header with the id of the key that sealed a payload."""


class KeyRing(Protocol):
    """Where keys are found. Both methods are called on many threads, often: keep keys at hand."""

    def current(self, group: str) -> tuple[str, bytes]:
        """Returns the id (≤ 64 bytes) and the 32 bytes of the key for new jobs of a group, ""
        without one.
        """

    def find(self, key_id: str) -> bytes | None:
        """Returns the 32 bytes of a key; None if it was erased or never was."""


class KeyMap:
    """A key ring in a mapping of keys by id, which may change: `del keys["tenant-7"]` erases.

    `current`: the id of the key for new jobs, or a function from their group to it. KeyErased is
    raised for a key that is not there. Raises InvalidArgument for keys of another length.
    """

    def __init__(self, keys: Mapping[str, bytes], *, current: str | Callable[[str], str]) -> None:
        self._keys = keys
        self._current = current
        for key_id, key in keys.items():
            if len(key) != KEY_BYTES:
                raise InvalidArgument(f"the key {key_id!r} must have {KEY_BYTES} bytes")

    def current(self, group: str) -> tuple[str, bytes]:
        """Returns the key for new jobs of a group."""
        key_id = self._current if isinstance(self._current, str) else self._current(group)
        key = self.find(key_id)
        if key is None:
            raise KeyErased(f"there is no key {key_id!r} to seal with")
        return key_id, key

    def find(self, key_id: str) -> bytes | None:
        """Returns a key; None if it is not there."""
        return self._keys.get(key_id)


class Codec:
    """Seals what a client pushes and its workers return, and opens what they read.

    - `keys`: the key ring; None: nothing is encrypted.
    - `compress`: deflate what is at least 256 bytes and gets smaller (default True).
    - `hashed_tags`: names of tags that are sent as keyed hashes: of `email:a@b.c` with the name
      "email" only the hash is told. `tag_key`: the 32 bytes for that, required with it.
    - `inflated_bytes_max`: larger contents are refused, not read (64 MiB).

    Payloads that are not sealed are read as they are. Raises InvalidArgument.
    """

    def __init__(
        self,
        keys: KeyRing | None = None,
        *,
        compress: bool = True,
        hashed_tags: Iterable[str] = (),
        tag_key: bytes | None = None,
        inflated_bytes_max: int = INFLATED_BYTES_MAX,
    ) -> None:
        self._keys = keys
        self._compress = compress
        self._hashed = frozenset(hashed_tags)
        self._tag_key = tag_key
        self._inflated_bytes_max = inflated_bytes_max
        if tag_key is not None and len(tag_key) != KEY_BYTES:
            raise InvalidArgument(f"tag_key: must have {KEY_BYTES} bytes")
        if self._hashed and tag_key is None:
            raise InvalidArgument("tag_key: is needed for hashed_tags")

    # ------------------------------------------------------------------ bytes

    def seal(self, data: bytes, content_type: str = "", *, group: str = "") -> bytes:
        """Returns the sealed frame of some bytes, for a job of this group."""
        return self.sealed(data, content_type, group=group)[0]

    def sealed(self, data: bytes, content_type: str = "", *, group: str = "") -> tuple[bytes, str]:
        """Returns the sealed frame of some bytes, and the id of its key, "" without one."""
        key = self._current(group)
        frame = seal(data, content_type, key, compress=self._compress)
        return frame, "" if key is None else key[0]

    def open(self, data: bytes) -> Opened | None:
        """Returns the inside of a frame; None for bytes that are no frame. Raises KeyErased, and
        SealError for a frame that is broken.
        """
        if not is_frame(data):
            return None
        return open_frame(data, self._find, inflated_bytes_max=self._inflated_bytes_max)

    def opened(self, data: bytes) -> bytes:
        """Returns the inside of a frame, or bytes that are no frame as they are."""
        inside = self.open(data)
        return data if inside is None else inside.data

    def _current(self, group: str) -> tuple[str, bytes] | None:
        return None if self._keys is None else self._keys.current(group)

    def _find(self, key_id: str) -> bytes | None:
        return None if self._keys is None else self._keys.find(key_id)

    # ------------------------------------------------------------------ tags

    def tag(self, name: str, value: str) -> str:
        """Returns the tag to search for: `client.jobs.list(f"tag:{codec.tag('email', 'a@b.c')}")`.
        Keys that are erased do not matter to it. Raises InvalidArgument without a `tag_key`.
        """
        if self._tag_key is None:
            raise InvalidArgument("tag_key: is needed for hashed tags")
        told = name.encode() + b"\0" + value.encode()
        return hmac.digest(self._tag_key, told, hashlib.sha256)[:16].hex()

    def hashed(self, tags: Iterable[str]) -> tuple[str, ...]:
        """Returns tags, hashed where their names are among `hashed_tags`."""
        return tuple(self._hashed_tag(tag) for tag in tags)

    def _hashed_tag(self, tag: str) -> str:
        name, colon, value = tag.partition(":")
        return self.tag(name, value) if colon and name in self._hashed else tag

    # ------------------------------------------------------------------ jobs

    def sealed_job(self, job: Outgoing) -> Outgoing:
        """Returns a job to push, sealed."""
        options = job.options
        key = self._current(options.group or "")
        frame = seal(job.payload, options.content_type or "", key, compress=self._compress)
        options = options.replaced(content_type=SEALED)
        if options.tags and self._hashed:
            options = options.replaced(tags=self.hashed(options.tags))
        if key is not None:
            options = with_headers(options, {**(options.headers or {}), KEY_HEADER: key[0]})
        return replace(job, payload=frame, options=options)

    def open_job(self, job: LeasedJob) -> None:
        """Opens a job in hand: payload, checkpoint, results of phases. Raises KeyErased, and
        SealError.
        """
        inside = self.open(job.payload)
        if inside is not None:
            job.payload, job.seal = inside.data, inside
        job.checkpoint = self.opened(job.checkpoint)
        job.phase_results = tuple(map(self.opened, job.phase_results))

    def sealed_for(
        self, job: LeasedJob, data: bytes, content_type: str, *, what: str, longest: int
    ) -> bytes:
        """Returns what a handler says of a job, sealed with the key of its payload. Raises
        KeyErased if that is erased, CodecError if the frame has more than `longest` bytes.
        """
        key_id = job.seal.key_id if isinstance(job.seal, Opened) else ""
        key = (key_id, self._found(key_id)) if key_id else self._current(job.group)
        frame = seal(data, content_type, key, compress=self._compress)
        if len(frame) > longest:
            raise CodecError(f"{what} has at most {longest} bytes sealed, not {len(frame)}")
        return frame

    def sealed_result(self, job: LeasedJob, data: bytes, content_type: str) -> bytes:
        """Returns a result, sealed as `sealed_for` does."""
        return self.sealed_for(job, data, content_type, what="a result", longest=RESULT_BYTES_MAX)

    def seal_report(self, job: LeasedJob, report: MutableMapping[str, Any]) -> None:
        """Seals the checkpoint and the piece of a result in a report, in place."""
        for name in ("checkpoint", "partial"):
            if data := report.get(name):
                report[name] = self.sealed_for(
                    job, data, "", what=f"a {name}", longest=REPORT_BYTES_MAX
                )

    def _found(self, key_id: str) -> bytes:
        key = self._find(key_id)
        if key is None:
            raise KeyErased(f"the key {key_id!r} of the job was erased while it ran")
        return key
