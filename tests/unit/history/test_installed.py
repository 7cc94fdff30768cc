"""What a URL needs that is not installed is said with the command that installs it."""

from __future__ import annotations

import sys

import pytest

from jobline_server.history.installed import check_installed
from jobline_server.offline.backups.places import place_of
from jobline_server.offline.backups.restoring import find_backup
from jobline_server.offline.opening import CannotRead

EXTRA = "pip install './clients/python[cli]' '.[s3]'"


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """None of these modules can be imported."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize("missing", ["s3fs", "fsspec"])
@pytest.mark.parametrize("url", ["s3://bucket/x", "s3a://bucket", "simplecache::s3://bucket"])
def test_s3_has_an_extra(monkeypatch: pytest.MonkeyPatch, url: str, missing: str) -> None:
    without(monkeypatch, missing)
    with pytest.raises(ImportError) as caught:
        check_installed(url)
    assert "pip install" in str(caught.value)
    if not url.startswith("simple"):
        assert str(caught.value).endswith(EXTRA)


@pytest.mark.parametrize(
    ("url", "missing", "said"),
    [
        ("gs://bucket", "gcsfs", "needs gcsfs: pip install gcsfs"),
        ("gs://bucket", "fsspec", "needs fsspec, and its package for gs: pip install fsspec"),
    ],
)
def test_others_have_a_package(
    monkeypatch: pytest.MonkeyPatch, url: str, missing: str, said: str
) -> None:
    without(monkeypatch, missing)
    with pytest.raises(ImportError) as caught:
        check_installed(url)
    assert str(caught.value) == said


def test_what_fsspec_itself_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "paramiko")
    monkeypatch.delitem(sys.modules, "fsspec.implementations.sftp", raising=False)
    with pytest.raises(ImportError, match=r"SFTPFileSystem requires .*: pip install paramiko$"):
        check_installed("sftp://host/x")


def test_a_protocol_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere is no protocol that fsspec knows"):
        check_installed("nowhere://host/x")


def test_what_is_installed_is_taken() -> None:
    check_installed("memory://x")
    check_installed("simplecache::memory://x")


def test_a_place_and_a_restore_name_the_url_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without what is secret in the URL."""
    without(monkeypatch, "s3fs")
    said = f"s3://***@bucket/x: needs the extra s3: install it in a checkout of Jobline: {EXTRA}"
    with pytest.raises(ImportError) as of_place:
        place_of("s3://me:secret@bucket/x")
    assert str(of_place.value) == said
    with pytest.raises(CannotRead) as of_restore:
        find_backup("s3://me:secret@bucket/x")
    assert str(of_restore.value) == said
