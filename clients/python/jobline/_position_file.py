"""A file that keeps how far a watch is, whole at any time: it is replaced, never changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from jobline.errors import InvalidArgument

PathGiven = str | os.PathLike[str]


class PositionFile:
    """The file at `path`, with a resume token in it."""

    def __init__(self, path: PathGiven) -> None:
        if not path:
            raise InvalidArgument("position: must be the path of a file")
        self.path = Path(path)
        # A save that nobody waits for any longer goes on in its thread, beside the next one.
        self._writing = threading.Lock()

    def load(self) -> str:
        """Returns the token; "" if there is no file yet. Raises OSError."""
        try:
            return self.path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise InvalidArgument(f"position: {self.path} holds no position of a watch") from None

    def save(self, token: str) -> None:
        """Replaces the token; it is on disk when this returns. Raises OSError."""
        with self._writing:
            beside = self.path.with_name(f"{self.path.name}.new")
            with beside.open("w", encoding="ascii") as file:
                file.write(f"{token}\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
