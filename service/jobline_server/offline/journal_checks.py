"""Checks of jobline.db: watermarks, journals, items. They read rows in the order of the file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from google.protobuf.message import DecodeError

from jobline_server.offline.findings import Checked, Named, Progress
from jobline_server.storage.codec import UnknownFact, decode_batch
from jobline_server.storage.journal_check import JournalCheck
from jobline_server.storage.recovery_cases import Decision, RecoveryCase, Unreadable
from jobline_server.storage.sqlite import bootstrap, items, journal
from jobline_server.storage.sqlite.statements import load
from jobline_server.storage.sqlite.store import PROMISE_FILE
from jobline_server.storage.sqlite.watermark import is_whole, mark_in
from jobline_server.storage.store import ItemKind, JournalRow, ShardRow

_SQL = load("offline.sql")
_SHARD_ROWS = load("items.sql")["all_shard_rows"]
_KINDS = {int(kind): kind.name.lower().replace("_", " ") for kind in ItemKind}


def kind_name(kind: int) -> str:
    """Returns what items of a kind are, in words; a kind of a newer version is its number."""
    return _KINDS.get(kind, str(kind))


def shard_rows(connection: sqlite3.Connection) -> list[tuple[ShardRow, int]]:
    """Returns the rows of all shards, each with the checksum of its checkpoint."""
    found = connection.execute(_SHARD_ROWS).fetchall()
    return [(ShardRow(*columns), checksum) for *columns, checksum in found]


def watermarks(connection: sqlite3.Connection, content: bytes) -> Iterator[Checked]:
    """Compares each shard with the last commit that was acknowledged."""
    rows = shard_rows(connection)
    readable = is_whole(content, len(rows))
    bad = 0
    for row, checksum in rows:
        mark = mark_in(content, row.shard) if readable else Unreadable.UNREADABLE
        case = bootstrap.case_of(connection, row, mark, checksum)
        if case.decision is Decision.REFUSE:
            bad += 1
            what = f"shard {row.shard} at offset {row.offset}: {case}"
            yield Checked(PROMISE_FILE, what, is_damaged=True)
    if not bad:
        yield Checked(PROMISE_FILE, f"{len(rows):,} shards have what was acknowledged")


def journals(connection: sqlite3.Connection, progress: Progress) -> Iterator[Checked]:
    """Reads the journal of each shard after its checkpoint, as a start does."""
    rows = [row for row, _ in shard_rows(connection)]
    total = sum(max(row.offset - row.checkpoint_offset, 0) for row in rows)
    done = progress.begin("journal", total)
    commits, size, bad = 0, 0, 0
    for row in rows:
        check = JournalCheck(row)
        case = check.begin()
        misread = ""
        while case is None and not misread:
            page = journal.read_page(connection, row, check.offset)
            if not page:
                break
            good, case = check.take(page)
            misread = _misread_in(good)
            commits += len(good)
            size += sum(len(one.blob) for one in good)
            done(len(good))
        case = case or check.finish()
        problem = misread or _problem_of(case, check)
        if problem:
            bad += 1
            yield Checked("journal", f"shard {row.shard} {problem}", is_damaged=True)
    if not bad:
        found = f"{commits:,} commits after the checkpoints, {size:,} bytes, in {len(rows)} shards"
        yield Checked("journal", found)


def _misread_in(rows: Sequence[JournalRow]) -> str:
    """Returns which of the rows holds what cannot be decoded; "" if all can."""
    for row in rows:
        try:
            decode_batch(row.blob)
        except (DecodeError, UnknownFact, LookupError, ValueError) as error:
            why = str(error) or type(error).__name__
            return f"row {row.offset} has a right checksum and cannot be understood: {why}"
    return ""


def _problem_of(case: RecoveryCase, check: JournalCheck) -> str:
    return f"after offset {check.offset}: {case}" if case.decision is Decision.REFUSE else ""


def items_of(connection: sqlite3.Connection, progress: Progress) -> Iterator[Checked]:
    """Checks each version of each item by its checksum."""
    generations = {row.shard: row.generation for row, _ in shard_rows(connection)}
    done = progress.begin(
        "items of checkpoints", connection.execute(_SQL["count_items"]).fetchone()[0]
    )
    count, unknown, bad, hidden = 0, Counter[int](), Named(), 0
    for shard, kind, key, generation, checksum, blob in connection.execute(_SQL["every_item"]):
        count += 1
        done(1)
        if kind not in _KINDS:
            unknown[kind] += 1
        if _is_good(shard, kind, key, generation, checksum, blob):
            continue
        place = {"shard": shard, "kind": kind, "key": key, "generation": generation}
        replaced = connection.execute(_SQL["is_superseded"], place).fetchone() is not None
        if replaced or _is_above(generation, generations.get(shard)):
            hidden += 1
        else:
            bad.add(f"{kind_name(kind)} {key} of shard {shard}")
    if bad.count:
        found = f"{bad.count:,} of {count:,} have a wrong checksum: {bad}"
        yield Checked("items", found, is_damaged=True)
    else:
        yield Checked("items", f"{count:,} of checkpoints, all with the right checksum")
    if hidden:
        yield Checked("items", f"{hidden:,} versions that nobody sees have a wrong checksum")
    for kind, many in sorted(unknown.items()):
        found = f"{many:,} are of kind {kind}, which only a newer version knows"
        yield Checked("items", found, is_damaged=True)


def _is_good(*columns: object) -> bool:
    shard, kind, key, generation, checksum, blob = columns
    try:
        return items.checksum_of(shard, kind, key, generation, blob) == checksum  # type: ignore[arg-type]  # as they stand in the file
    except TypeError:  # NULL, or text, where a number or a blob was
        return False


def _is_above(generation: object, finished: int | None) -> bool:
    """Returns whether a version is one that an unfinished checkpoint has staged."""
    return isinstance(generation, int) and finished is not None and generation > finished


def set_apart(connection: sqlite3.Connection) -> Iterator[Checked]:
    """Says what was set apart by earlier starts: it is lost already, and nothing new."""
    counts = Counter(row[0] for row in connection.execute(_SQL["set_apart"]))
    for source, count in sorted(counts.items()):
        yield Checked("set apart", f"{count:,} of {source}, by earlier starts")
