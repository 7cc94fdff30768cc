"""Rows that are kept in files, one each, so that a run that was interrupted goes on where it was.

A run is over when each of its rows was measured; the next one begins anew. Rows of another scale or
of an older run are not taken: figures of two days are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers.peer import Row

LASTS_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Results:
    """Rows below a directory. `scale` is what they were measured at; `now` seconds since 1970."""

    directory: Path
    scale: str
    now: float

    def begin(self, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of an interrupted run by key; none if it is over, or was something else."""
        kept = {key: row for key in keys if (row := self._read(key)) is not None}
        if len(kept) == len(keys):
            for key in keys:
                self._path(key).unlink()
            return {}
        return kept

    def keep(self, row: Row) -> None:
        """Keeps a row that was measured; one that failed is tried again."""
        if row.failed:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        kept = {"scale": self.scale, "at": self.now, "row": asdict(row)}
        fresh = self._path(row.key).with_suffix(".new")
        fresh.write_text(json.dumps(kept, indent=2))
        fresh.replace(self._path(row.key))

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.json"

    def _read(self, key: str) -> Row | None:
        try:
            kept = json.loads(self._path(key).read_text())
            row = Row(**kept["row"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        is_of_this_run = kept["scale"] == self.scale and self.now - kept["at"] < LASTS_SECONDS
        return row if is_of_this_run else None
