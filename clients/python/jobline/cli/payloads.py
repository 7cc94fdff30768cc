"""Where the payloads of `push` come from: an argument, stdin, a file, or one a line.

Knows bytes and files; nothing of servers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import IO

from jobline.cli.exit_codes import UsageError

JSON = "application/json"
# What one call may carry: `push_payloads` takes 10,000; bytes leave room below 16 MiB a message.
CALL_JOBS_MAX = 10_000
CALL_BYTES_MAX = 8 << 20


def single(payload: str | None, file: Path | None) -> bytes:
    """The one payload of a push without `--lines`."""
    if payload is not None and payload != "-":
        if file is not None:
            raise UsageError("a payload and --file: give one of them")
        return payload.encode("utf-8", "surrogateescape")
    if file is not None:
        return read(file)
    if payload == "-" or not sys.stdin.isatty():
        return _stdin("the payload from the terminal", "it").read()
    return b""


def read(file: Path) -> bytes:
    """A file's content."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def lines(payload: str | None, file: Path | None) -> Iterator[bytes]:
    """One payload a line, of a file or of stdin; empty lines are left out."""
    if payload not in {None, "-"}:
        raise UsageError("--lines reads from stdin or --file; it takes no payload as an argument")
    if file is None:
        yield from _lines_of(_stdin("payloads from the terminal, one a line", "them"))
        return
    try:
        with file.open("rb") as opened:
            yield from _lines_of(opened)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def copies(payload: bytes, count: int) -> Iterator[bytes]:
    """The same payload several times."""
    return iter(repeat(payload, count))


def calls(payloads: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Payloads cut into what one call may carry."""
    batch: list[bytes] = []
    size = 0
    for payload in payloads:
        if batch and (len(batch) == CALL_JOBS_MAX or size + len(payload) > CALL_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    if batch:
        yield batch


def content_type_of(payloads: Iterable[bytes]) -> str:
    """`application/json` if every payload is a JSON object or list, else "".

    Numbers and bare words are JSON too, but `push mail 42` means text.
    """
    empty = True
    for payload in payloads:
        empty = False
        if payload.lstrip()[:1] not in {b"{", b"["} or not _is_json(payload):
            return ""
    return "" if empty else JSON


def _stdin(what: str, ended: str) -> IO[bytes]:
    """Returns stdin; on a terminal it first says that it is read, or the command seems to hang."""
    if sys.stdin.isatty():
        end = f"Ctrl-D at the start of a line ends {ended}"
        print(f"reading {what}; {end}", file=sys.stderr, flush=True)
    return sys.stdin.buffer


def _is_json(payload: bytes) -> bool:
    try:
        json.loads(payload)
    except (ValueError, RecursionError):
        return False
    return True


def _lines_of(opened: IO[bytes]) -> Iterator[bytes]:
    for line in opened:
        stripped = line.rstrip(b"\r\n")
        if stripped:
            yield stripped
