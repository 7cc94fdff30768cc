"""The destination of files: a directory, or a place that fsspec reaches by its URL.

A file appears there whole: in a directory it is written under a temporary name, fsynced and
renamed; object stores show a file when all of it is there; elsewhere it is renamed, too. The same
file sent twice is the same file. All of it belongs in a thread.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Protocol

from jobline_server.history.installed import check_installed
from jobline_server.history.spool import write_durably

# Of these protocols a file is visible only when it is complete, and renaming copies it.
_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "memory"})


# To the last @ of a word, because a password may have one, or a slash that should be escaped.
_CREDENTIALS = re.compile(r"://\S*@")


class Destination(Protocol):
    """Where files go."""

    def send(self, name: str, path: Path) -> None:
        """Stores the file at `path` as `name`. Raises any error; nothing of it is visible then, and
        it may be sent again.
        """


class Directory:
    """A directory of this machine; made if there is none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, name: str, path: Path) -> None:
        """Copies the file."""
        write_durably(self._directory / name, path.read_bytes())


class Remote:
    """A place that fsspec reaches; what it needs beside the URL, such as credentials, it takes from
    its own configuration.
    """

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415  # a directory needs none

        self._files: Any
        self._files, self._root = fsspec.core.url_to_fs(url)
        protocol = self._files.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        self._is_whole = bool(names & _WHOLE)

    def send(self, name: str, path: Path) -> None:
        """Uploads the file."""
        target = posixpath.join(self._root, name)
        folder, base = posixpath.split(target)
        self._files.makedirs(folder, exist_ok=True)
        if self._is_whole:
            self._files.put_file(str(path), target)
            return
        temporary = posixpath.join(folder, f".{base}.tmp")
        self._files.put_file(str(path), temporary)
        self._files.mv(temporary, target)


def destination_of(history: str) -> Destination:
    """Returns the destination that a setting names. Raises `ValueError` or `ImportError` if its URL
    needs what is not installed.
    """
    directory = directory_of(history)
    if directory is not None:
        return Directory(directory)
    check_installed(history)
    return Remote(history)


def directory_of(to: str) -> Path | None:
    """Returns the directory that a setting names; None for a URL of another place."""
    if to.startswith("file://"):
        return Path(to.removeprefix("file://"))
    return None if "://" in to else Path(to)


def is_in(to: str, data: Path) -> bool:
    """Returns whether a destination is a data directory, or in it: it would be lost with the data,
    or its files would be among those of the server.
    """
    directory, data = directory_of(to), data.resolve()
    return directory is not None and directory.resolve().is_relative_to(data)


def without_credentials(text: str) -> str:
    """Returns a text, such as a URL or an error that names one, without users and passwords."""
    return _CREDENTIALS.sub("://***@", text)
