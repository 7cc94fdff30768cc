"""The manifest of a backup: the file that makes a folder a backup, and says what is in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

MANIFEST_FILE = "manifest.json"
# The form of the manifest and of the folder. The databases have formats of their own.
FORMAT = 1
# The time, UTC, and the identity of the store: two stores share no name. Names are in the order of
# the server's clock, which may have been wrong; `Manifest.position` has the true one.
NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{16}")
_SUM = "manifest_sha256"
_FILE_NAME = re.compile(r"[a-z]+(\.db)?")


class BadManifest(Exception):
    """The manifest cannot be read; the message says why."""


class NewerManifest(BadManifest):
    """A newer version wrote it."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file of a backup. `format` is that of a database; 0 for other files."""

    bytes: int
    sha256: str
    format: int = 0


@dataclass(frozen=True, slots=True)
class BackupShard:
    """Where a shard was: the epoch and the offset of its last commit."""

    shard: int
    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup. `at_ms`: the moment whose state it has, as wall time. `store`: the identity of its
    store, in hexadecimal.
    """

    name: str
    at_ms: int
    server_version: str
    store: str
    shards: tuple[BackupShard, ...]
    files: Mapping[str, BackupFile]

    @property
    def position(self) -> tuple[tuple[int, int], ...]:
        """Returns how far its store was: of two backups of a store the later one has the higher
        position, or the same if nothing was committed between them.
        """
        in_order = sorted(self.shards, key=lambda one: one.shard)
        return tuple((one.epoch, one.offset) for one in in_order)

    @property
    def total_bytes(self) -> int:
        """Returns the bytes of its files."""
        return sum(file.bytes for file in self.files.values())


def encode(manifest: Manifest) -> bytes:
    """Returns the content of the file."""
    fields = {"format": FORMAT, **asdict(manifest)}
    return json.dumps({**fields, _SUM: _sum_of(fields)}, indent=1).encode()


def decode(content: bytes) -> Manifest:
    """Returns what a file says. Raises `BadManifest`."""
    try:
        fields = json.loads(content)
        found, wanted = fields.get("format"), fields.pop(_SUM)
        if isinstance(found, int) and found > FORMAT:
            raise NewerManifest(
                f"the backup has format {found}; this version reads format {FORMAT}"
            )
        if wanted != _sum_of(fields):
            raise BadManifest("its checksum is wrong")
        return _manifest_of(fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadManifest("it is no manifest of a backup") from error


def _manifest_of(fields: dict[str, Any]) -> Manifest:
    files = {name: BackupFile(**file) for name, file in fields["files"].items()}
    if not all(_FILE_NAME.fullmatch(name) for name in files):
        # Nothing may be written or deleted elsewhere because of a manifest.
        raise BadManifest("it names files that are none of a backup")
    return Manifest(
        name=cast("str", fields["name"]),
        at_ms=int(fields["at_ms"]),
        server_version=str(fields["server_version"]),
        store=str(fields["store"]),
        shards=tuple(BackupShard(**shard) for shard in fields["shards"]),
        files=files,
    )


def _sum_of(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
