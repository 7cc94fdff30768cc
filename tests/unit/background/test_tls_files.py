"""Certificates that clients refuse for their dates are used all the same, and a warning says so."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
import trustme

from jobline_server.auth.tls_files import TlsFiles
from jobline_server.background import tls_files
from jobline_server.background.tls_files import ReadTlsFiles
from jobline_server.engine.values import Now
from tests.server.authorities import HOST, Files


def at(year: int) -> Now:
    return Now(round(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp() * 1_000), 0)


def between(authority: trustme.CA, first: int, last: int) -> trustme.LeafCert:
    """A certificate of the years from one to another."""
    begins, ends = (dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (first, last))
    return authority.issue_cert(HOST, not_before=begins, not_after=ends)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What is warned of, with both dates."""
    warned: list[tuple[str, str, str]] = []

    class Log:
        def info(self, what: str, **fields: object) -> None: ...

        def warning(self, what: str, *, valid_from: str, expires: str) -> None:
            warned.append((what, valid_from[:10], expires[:10]))

    monkeypatch.setattr(tls_files, "LOG", Log())
    return warned


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


EXPIRED = "the certificate has expired: clients refuse it"
NOT_YET = "the certificate is not valid yet: clients refuse it"
OF_CHAIN = "a certificate of the chain has expired: clients may refuse it"


async def test_one_out_of_date_is_warned_of_once_and_so_is_the_next(
    files: Files, warnings: list[tuple[str, str, str]]
) -> None:
    """It was taken without a word, at a start and when it was read again."""
    authority = trustme.CA()
    files.write(between(authority, 2019, 2020))
    task = ReadTlsFiles(TlsFiles(files.certificate, files.key, None))
    task.warn(at(2026))
    assert await task.run_once(at(2026)) == {}
    assert warnings == [(EXPIRED, "2019-01-01", "2020-01-01")]
    files.write(between(authority, 2030, 2031))
    assert await task.run_once(at(2026)) == {"read": 1}
    assert warnings[1:] == [(NOT_YET, "2030-01-01", "2031-01-01")]
    files.write(between(authority, 2025, 2027))
    assert await task.run_once(at(2026)) == {"read": 1}
    assert len(warnings) == 2


async def test_one_that_ends_while_it_is_in_use_is_warned_of(
    files: Files, warnings: list[tuple[str, str, str]]
) -> None:
    files.write(between(trustme.CA(), 2025, 2026))
    task = ReadTlsFiles(TlsFiles(files.certificate, files.key, None))
    task.warn(at(2025))
    assert not warnings
    for year in (2027, 2028):
        await task.run_once(at(year))
    assert warnings == [(EXPIRED, "2025-01-01", "2026-01-01")]


async def test_one_of_the_chain_may_be_the_reason(
    files: Files, warnings: list[tuple[str, str, str]]
) -> None:
    """A client that knows another way to its authority takes it."""
    authority = trustme.CA()
    files.write(between(authority, 2025, 2040))
    over = between(authority, 2020, 2024).cert_chain_pems[0].bytes()
    files.certificate.write_bytes(files.certificate.read_bytes() + over)
    task = ReadTlsFiles(TlsFiles(files.certificate, files.key, None))
    task.warn(at(2026))
    assert warnings == [(OF_CHAIN, "2025-01-01", "2024-01-01")]
