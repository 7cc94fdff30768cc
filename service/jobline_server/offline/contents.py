"""What is in the files of a store, in numbers; and the journal, commit by commit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from jobline_server.engine.entries import Fact
from jobline_server.engine.values import JobState
from jobline_server.offline.findings import Progress
from jobline_server.offline.journal_checks import kind_name, shard_rows
from jobline_server.offline.opening import FORMATS, CannotRead, StoreFiles, Why, opened
from jobline_server.storage.codec import UnknownFact, decode_batch
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.journal import OFFSET_MAX, position_of
from jobline_server.storage.sqlite.statements import load
from jobline_server.storage.store import ShardRow

_SQL = load("offline.sql")


@dataclass(frozen=True, slots=True)
class FileView:
    """A database file: its size and that of its WAL, and how much of it is free, in bytes."""

    file: str
    kind: str
    format: int
    file_bytes: int
    wal_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ShardView:
    """A shard: where its checkpoint and its journal end, and what is in them."""

    shard: int
    epoch: int
    offset: int
    checkpoint_offset: int
    commits: int
    commit_bytes: int
    items: int
    item_bytes: int


@dataclass(frozen=True, slots=True)
class KindView:
    """Items of one kind, in all shards."""

    kind: str
    items: int
    item_bytes: int


@dataclass(frozen=True, slots=True)
class EndedView:
    """Ended jobs of one queue and state."""

    queue: str
    state: str
    jobs: int
    job_bytes: int


@dataclass(slots=True)
class Contents:
    """What is in the files that were there."""

    files: list[FileView] = field(default_factory=list)
    shards: list[ShardView] = field(default_factory=list)
    kinds: list[KindView] = field(default_factory=list)
    ended: list[EndedView] = field(default_factory=list)
    operations: int = 0
    set_apart: int = 0


@dataclass(frozen=True, slots=True)
class FactView:
    """Something that happened, without payloads: they are private."""

    fact: str
    at_ms: int
    queue: str


@dataclass(frozen=True, slots=True)
class CommitView:
    """A commit of one shard. `facts` is empty, and `problem` says why, if it cannot be decoded."""

    shard: int
    offset: int
    epoch: int
    commit_bytes: int
    facts: list[FactView]
    problem: str = ""


def contents_of(files: StoreFiles, progress: Progress) -> Contents:
    """Reads what is in the files. Raises `CannotRead`."""
    contents = Contents()
    for name in files.names:
        progress.begin(name, None)
        with opened(files, name) as (connection, kind):
            contents.files.append(_file_view(connection, files, name, kind))
            if kind == DATABASE_FILE:
                _add_jobline(contents, connection)
            else:
                _add_finished(contents, connection)
    return contents


def commits_of(files: StoreFiles, shard: int | None) -> Iterator[CommitView]:
    """Yields the commits that the journal has, of one shard or of all, one after another.

    Raises CannotRead where there is no journal, or no such shard.
    """
    has_journal = False
    for name in files.names:
        with opened(files, name) as (connection, kind):
            if kind == DATABASE_FILE:
                has_journal = True
                yield from _commits(connection, shard)
    if not has_journal:
        raise CannotRead(
            Why.FOREIGN, f"{files.path(files.names[0])} has no journal", "jobline.db has it."
        )


def _commits(connection: sqlite3.Connection, shard: int | None) -> Iterator[CommitView]:
    rows = [row for row, _ in shard_rows(connection)]
    chosen = [row for row in rows if shard in {None, row.shard}]
    if shard is not None and not chosen:
        raise CannotRead(Why.FOREIGN, f"there is no shard {shard}; there are {len(rows)}")
    for row in chosen:
        bounds = {
            "after": position_of(row.shard, 0),
            "last": position_of(row.shard, OFFSET_MAX),
        }
        with closing(connection.execute(_SQL["journal_rows"], bounds)) as found:
            for position, epoch, _, _, blob in found:
                yield _commit_view(row.shard, position & OFFSET_MAX, epoch, blob)


def _commit_view(shard: int, offset: int, epoch: int, blob: bytes) -> CommitView:
    try:
        facts = [_fact_view(fact) for fact in decode_batch(blob)]
    except (DecodeError, UnknownFact, LookupError, ValueError, TypeError) as error:
        size = len(blob or b"")
        return CommitView(shard, offset, epoch, size, [], str(error) or type(error).__name__)
    return CommitView(shard, offset, epoch, len(blob), facts)


def _fact_view(fact: Fact) -> FactView:
    return FactView(type(fact).__name__, fact.at_ms, getattr(fact, "queue", ""))


def _file_view(connection: sqlite3.Connection, files: StoreFiles, name: str, kind: str) -> FileView:
    path = files.path(name)
    wal = path.with_name(path.name + "-wal")
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    return FileView(
        file=name,
        kind=kind,
        format=FORMATS[kind].version,
        file_bytes=path.stat().st_size,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        free_bytes=free * page,
    )


def _add_jobline(contents: Contents, connection: sqlite3.Connection) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for shard, kind, items, size in connection.execute(_SQL["items_by_kind"]):
        counts[shard, kind] += items
        sizes[shard, kind] += size
    for shard, kind, replaced in connection.execute(_SQL["count_superseded"]):
        counts[shard, kind] -= replaced
    for row, _ in shard_rows(connection):
        contents.shards.append(_shard_view(connection, row, counts, sizes))
    for kind in sorted({kind for _, kind in counts}):
        many = sum(count for (_, of), count in counts.items() if of == kind)
        size = sum(size for (_, of), size in sizes.items() if of == kind)
        contents.kinds.append(KindView(kind_name(kind), many, size))
    contents.set_apart = sum(1 for _ in connection.execute(_SQL["set_apart"]))


def _shard_view(
    connection: sqlite3.Connection,
    row: ShardRow,
    counts: Counter[tuple[int, int]],
    sizes: Counter[tuple[int, int]],
) -> ShardView:
    bounds = {
        "after": position_of(row.shard, row.checkpoint_offset),
        "last": position_of(row.shard, OFFSET_MAX),
    }
    commits, commit_bytes = connection.execute(_SQL["journal_size"], bounds).fetchone()
    return ShardView(
        shard=row.shard,
        epoch=row.epoch,
        offset=row.offset,
        checkpoint_offset=row.checkpoint_offset,
        commits=commits,
        commit_bytes=commit_bytes,
        items=sum(count for (of, _), count in counts.items() if of == row.shard),
        item_bytes=sum(size for (of, _), size in sizes.items() if of == row.shard),
    )


def _add_finished(contents: Contents, connection: sqlite3.Connection) -> None:
    for queue, state, jobs, size in connection.execute(_SQL["ended_by_queue"]):
        contents.ended.append(EndedView(queue, _state_name(state), jobs, size))
    contents.operations = connection.execute(_SQL["count_operations"]).fetchone()[0]


def _state_name(state: Any) -> str:
    try:
        return JobState(state).name
    except ValueError:
        return str(state)
