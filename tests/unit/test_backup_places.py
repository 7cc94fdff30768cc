"""A place for backups that does not answer is not one that has none."""

from __future__ import annotations

import fsspec
import pytest

from jobline_server.offline.backups.finishing import delete_unfinished
from jobline_server.offline.backups.manifest import MANIFEST_FILE
from jobline_server.offline.backups.places import place_of

NAME = "20260101T000000.000Z-0123456789abcdef"


def test_a_whole_backup_stays_where_the_place_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given one that was cut off after it was whole, and a place that fails when it is asked; then
    it is not taken for half a backup, and is not deleted.
    """
    place = place_of("memory://backups-of-a-test")
    place.put(NAME, MANIFEST_FILE, b"{}")

    def fails(*_: object, **__: object) -> None:
        raise ConnectionError("the store does not answer")

    with monkeypatch.context() as away:
        away.setattr(type(fsspec.filesystem("memory")), "info", fails)
        with pytest.raises(ConnectionError):
            delete_unfinished(place, NAME)
    assert place.has(NAME, MANIFEST_FILE)
    assert not place.has(NAME, "jobline.db")


def test_half_a_backup_is_deleted_where_what_is_missing_may_not_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S3 refuses to say that a file is missing to a caller that may list some prefixes alone. Each
    backup would fail from then on that finds half of one.
    """
    place = place_of("memory://backups-of-another-test")
    half = NAME.replace("2026", "2025", 1)
    place.put(NAME, MANIFEST_FILE, b"{}")
    place.put(half, "jobline.db", b"")
    files = type(fsspec.filesystem("memory"))
    info = files.info

    def refuses(self: object, path: str, **named: object) -> object:
        try:
            return info(self, path, **named)
        except FileNotFoundError:
            raise PermissionError("Forbidden") from None

    monkeypatch.setattr(files, "info", refuses)
    for folder in (half, NAME):
        delete_unfinished(place, folder)
    assert not place.has("not-there", MANIFEST_FILE)
    assert place.folders() == [NAME]
    assert place.has(NAME, MANIFEST_FILE)
