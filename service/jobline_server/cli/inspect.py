"""`jobline inspect FILE`: what is in the files that a stopped server left on its disk."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.filesize import decimal

from jobline.cli.command import flowing
from jobline.cli.durations import show_moment
from jobline.cli.exit_codes import UsageError
from jobline.cli.options import Limit
from jobline.cli.output import Column, Output, pairs, table
from jobline_server.cli.offline import PANEL, Json, Store, looking_at

if TYPE_CHECKING:
    from jobline_server.offline.contents import CommitView, Contents, FileView, ShardView

Journal = Annotated[
    bool, typer.Option("--journal", metavar="", help="List the commits of the journal.")
]
Shard = Annotated[
    int | None, typer.Option("--shard", min=0, metavar="N", help="With --journal: only of a shard.")
]


def register(app: typer.Typer) -> None:
    """Adds `inspect`."""
    inspect.__doc__ = flowing(inspect.__doc__ or "")
    app.command("inspect", rich_help_panel=PANEL)(inspect)


def inspect(
    path: Store,
    *,
    journal: Journal = False,
    shard: Shard = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """Show what is in the files of a server that is stopped; changes nothing.

    Shards with their checkpoint and the journal after it, items of checkpoints by kind, ended jobs
    by queue and state. With --journal each commit with its facts, without payloads. `jobline
    verify` says whether they are whole.
    """
    from jobline_server.offline.contents import commits_of, contents_of

    with looking_at(path, as_json=as_json) as (files, out, bars):
        if shard is not None and not journal:
            raise UsageError("--shard chooses commits of the journal: write --journal, too")
        if journal:
            _list(out, islice(commits_of(files, shard), limit or None), limit)
            return
        contents = contents_of(files, bars)
        bars.end()
        out.document(asdict(contents), _view(contents))


def _list(out: Output, commits: Any, limit: int) -> None:
    count = out.items(commits, asdict, _COMMITS, none="The journal has no commits.")
    if limit and count == limit:
        out.note(f"The first {limit}; there may be more: --limit, --shard.")


def _view(contents: Contents) -> RenderableType:
    parts: list[RenderableType] = [table(contents.files, _FILES)]
    if contents.shards:
        parts += ["", table(contents.shards, _SHARDS)]
    if contents.kinds:
        parts += ["", table(contents.kinds, _KINDS)]
    if contents.ended:
        parts += ["", table(contents.ended, _ENDED)]
    rest = [
        ("operations", f"{contents.operations:,}" if contents.operations else ""),
        ("set apart", f"{contents.set_apart:,}" if contents.set_apart else ""),
    ]
    return Group(*parts, "", pairs(rest)) if any(value for _, value in rest) else Group(*parts)


def _moment(at_ms: int) -> str:
    return show_moment(datetime.fromtimestamp(at_ms / 1_000, UTC))


def _facts(commit: CommitView) -> str:
    if commit.problem:
        return f"cannot be understood: {commit.problem}"
    return ", ".join(f"{one.fact} {one.queue}".strip() for one in commit.facts)


_FILES: list[Column[FileView]] = [
    Column("file", lambda one: one.file),
    Column("format", lambda one: f"{one.kind} {one.format}"),
    Column("size", lambda one: decimal(one.file_bytes), right=True),
    Column("of it free", lambda one: decimal(one.free_bytes), right=True),
    Column("in its WAL", lambda one: decimal(one.wal_bytes), right=True),
]
_SHARDS: list[Column[ShardView]] = [
    Column("shard", lambda one: str(one.shard), right=True),
    Column("epoch", lambda one: f"{one.epoch:,}", right=True),
    Column("offset", lambda one: f"{one.offset:,}", right=True),
    Column("checkpoint", lambda one: f"{one.checkpoint_offset:,}", right=True),
    Column("commits after it", lambda one: f"{one.commits:,}", right=True),
    Column("bytes", lambda one: decimal(one.commit_bytes), right=True),
    Column("items", lambda one: f"{one.items:,}", right=True),
    Column("bytes", lambda one: decimal(one.item_bytes), right=True),
]
_KINDS: list[Column[Any]] = [
    Column("items of checkpoints", lambda one: one.kind),
    Column("count", lambda one: f"{one.items:,}", right=True),
    Column("bytes", lambda one: decimal(one.item_bytes), right=True),
]
_ENDED: list[Column[Any]] = [
    Column("ended jobs of", lambda one: one.queue),
    Column("state", lambda one: one.state),
    Column("count", lambda one: f"{one.jobs:,}", right=True),
    Column("bytes", lambda one: decimal(one.job_bytes), right=True),
]
_COMMITS: list[Column[CommitView]] = [
    Column("shard", lambda one: str(one.shard), right=True),
    Column("offset", lambda one: f"{one.offset:,}", right=True),
    Column("bytes", lambda one: f"{one.commit_bytes:,}", right=True),
    Column("at", lambda one: _moment(one.facts[0].at_ms) if one.facts else ""),
    Column("facts", _facts, yields=True),
]
