"""Where backups are kept: a directory, or what fsspec reaches by a URL.

A place has folders, one for each backup, with files in them, and nothing deeper.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, cast

from jobline_server.history.destination import without_credentials
from jobline_server.history.installed import check_installed
from jobline_server.history.spool import write_durably
from jobline_server.storage.sqlite.files import sync_directory

PIECE_BYTES = 1 << 20
# So much is made durable at once. The disk may be that of the queue: its commits wait meanwhile,
# for some tenths of a second if a whole file is.
DURABLE_BYTES = 2 << 20


class Place(Protocol):
    """A place for backups. Its methods raise `OSError`, or any error of a library of fsspec."""

    def folders(self) -> list[str]:
        """Returns the names of the folders; none if the place is not there."""

    def has(self, folder: str, name: str) -> bool:
        """Returns whether there is a file of this name."""

    def read(self, folder: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """Opens a file for reading. Raises `FileNotFoundError`."""

    def size(self, folder: str, name: str) -> int:
        """Returns the bytes of a file."""

    def write(self, folder: str, name: str, pieces: Iterator[bytes]) -> None:
        """Writes a file, durably where the place can do that."""

    def put(self, folder: str, name: str, content: bytes) -> None:
        """Writes a small file that is seen whole or not at all."""

    def remove(self, folder: str, names: tuple[str, ...]) -> None:
        """Deletes these files, in their order, as far as they are there, and the folder if nothing
        else is in it.
        """


class DirectoryPlace:
    """A directory of this machine; made when something is written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def folders(self) -> list[str]:
        """See `Place.folders`."""
        if not self._directory.is_dir():
            return []
        return sorted(path.name for path in self._directory.iterdir() if path.is_dir())

    def has(self, folder: str, name: str) -> bool:
        """See `Place.has`."""
        return (self._directory / folder / name).is_file()

    def read(self, folder: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """See `Place.read`."""
        return (self._directory / folder / name).open("rb")

    def size(self, folder: str, name: str) -> int:
        """See `Place.size`."""
        return (self._directory / folder / name).stat().st_size

    def write(self, folder: str, name: str, pieces: Iterator[bytes]) -> None:
        """See `Place.write`."""
        path = self._directory / folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        written = durable = 0
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for piece in pieces:
                written += file.write(piece)
                if written - durable >= DURABLE_BYTES:
                    os.fdatasync(descriptor)
                    durable = written
            os.fsync(descriptor)

    def put(self, folder: str, name: str, content: bytes) -> None:
        """See `Place.put`."""
        sync_directory(self._directory / folder)
        write_durably(self._directory / folder / name, content)
        sync_directory(self._directory)

    def remove(self, folder: str, names: tuple[str, ...]) -> None:
        """See `Place.remove`."""
        path = self._directory / folder
        for name in names:
            (path / name).unlink(missing_ok=True)
            (path / f".{name}.tmp").unlink(missing_ok=True)
        with suppress(OSError):
            path.rmdir()


class RemotePlace:
    """A place that fsspec reaches; what it needs beside the URL, such as credentials, it takes from
    its own configuration.
    """

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415  # a directory needs none

        self._files: Any
        # Without its caches of listings: another process writes there, too.
        self._files, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)

    def folders(self) -> list[str]:
        """See `Place.folders`."""
        try:
            found = self._files.ls(self._root, detail=True)
        except FileNotFoundError:
            return []
        return sorted(
            posixpath.basename(one["name"].rstrip("/"))
            for one in found
            if one["type"] == "directory"
        )

    def has(self, folder: str, name: str) -> bool:
        """See `Place.has`."""
        # Not `isfile`, which takes a place that does not answer for one that has no such file.
        path = self._path(folder, name)
        try:
            return bool(self._files.info(path)["type"] == "file")
        except FileNotFoundError:
            return False
        except PermissionError:
            # S3's answer for what is not there, where only some prefixes may be listed.
            return self._lists(path)

    def read(self, folder: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """See `Place.read`."""
        opened = self._files.open(self._path(folder, name), "rb")
        return cast("AbstractContextManager[IO[bytes]]", opened)

    def size(self, folder: str, name: str) -> int:
        """See `Place.size`."""
        return int(self._files.info(self._path(folder, name))["size"])

    def write(self, folder: str, name: str, pieces: Iterator[bytes]) -> None:
        """See `Place.write`."""
        self._files.makedirs(self._path(folder, ""), exist_ok=True)
        with self._files.open(self._path(folder, name), "wb") as file:
            for piece in pieces:
                file.write(piece)

    def put(self, folder: str, name: str, content: bytes) -> None:
        """See `Place.put`. What is cut off is no JSON, and so no manifest."""
        self._files.pipe_file(self._path(folder, name), content)

    def remove(self, folder: str, names: tuple[str, ...]) -> None:
        """See `Place.remove`."""
        for name in names:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._path(folder, name))
        # Object stores have no folders.
        with suppress(OSError, NotImplementedError):
            self._files.rmdir(self._path(folder, ""))

    def _lists(self, path: str) -> bool:
        try:
            found = self._files.ls(posixpath.dirname(path), detail=True)
        except FileNotFoundError:
            return False
        name = posixpath.basename(path)
        return any(
            posixpath.basename(one["name"]) == name and one["type"] == "file" for one in found
        )

    def _path(self, folder: str, name: str) -> str:
        return posixpath.join(self._root, folder, name).rstrip("/")


def place_of(where: str) -> Place:
    """Returns the place that a path or URL names. Raises `ValueError` or `ImportError` if a URL
    needs what is not installed.
    """
    if where.startswith("file://"):
        return DirectoryPlace(Path(where.removeprefix("file://")))
    if "://" not in where:
        return DirectoryPlace(Path(where))
    try:
        check_installed(where)
        return RemotePlace(where)
    except ImportError as error:
        raise ImportError(without_credentials(f"{where}: {error}")) from error
    except ValueError as error:
        raise ValueError(without_credentials(f"{where}: {error}")) from error


def parent_and_folder(where: str) -> tuple[str, str]:
    """Returns the place of a folder that a path or URL names, and its name there."""
    if "://" not in where:
        path = Path(where).absolute()
        return str(path.parent), path.name
    parent, _, name = where.rstrip("/").rpartition("/")
    return parent, name
