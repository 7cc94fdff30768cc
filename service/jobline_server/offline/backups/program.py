"""The process in which a server has a backup finished: `python -m …offline.backups.program`.

It reads one line of JSON, the request, writes lines of JSON on what it does, and ends when its
stdin does: it does not outlive the server. Credentials in a URL come this way, too, and are in no
list of processes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from jobline_server.history.destination import without_credentials
from jobline_server.offline.backups.choosing import delete_older, latest
from jobline_server.offline.backups.finishing import (
    Wanted,
    delete_unfinished,
    finish,
)
from jobline_server.offline.backups.places import place_of

_EVERY_SECONDS = 0.2


class Told:
    """Tells the server how far the work is, some times a second."""

    def __init__(self) -> None:
        self._told_at = 0.0

    def begin(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begins a piece of work."""
        say(step=title, done=0, total=total or 0)
        count = 0

        def done(amount: int) -> None:
            nonlocal count
            count += amount
            if perf_counter() - self._told_at >= _EVERY_SECONDS:
                self._told_at = perf_counter()
                say(step=title, done=count, total=total or 0)

        return done


def say(**what: object) -> None:
    """Writes a line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Does what is asked; returns the exit code."""
    line = sys.stdin.readline()
    if not line:
        return 1  # the server went away
    request: dict[str, Any] = json.loads(line)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        _answer(request)
    except Exception as error:  # noqa: BLE001  # any error of any destination: the server logs it
        say(failed=without_credentials(str(error)) or type(error).__name__)
        return 1
    return 0


def _answer(request: dict[str, Any]) -> None:
    place = place_of(request["to"])
    if "store" in request:
        newest = latest(place, request["store"], request["until_name"])
        say(newest_ms=newest.at_ms if newest else 0, name=newest.name if newest else "")
        return
    for name in request["unfinished"]:
        delete_unfinished(place, name)
        # It is known no longer by its name, and needs not be.
        (Path(request["copies"]) / name).rmdir()
    if "copy" not in request:
        say(taken_away=len(request["unfinished"]))
        return
    copy = Path(request["copy"])
    wanted = Wanted(**request["wanted"])
    manifest = finish(copy, wanted, place, Told())
    say(whole=manifest.name, bytes=manifest.total_bytes)
    # It stands, whatever becomes of the others.
    for name in delete_older(place, manifest, wanted.keep):
        say(deleted=name)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
