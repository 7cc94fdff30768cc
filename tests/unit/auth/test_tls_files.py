"""Certificates that are read again: which are taken, and which are not."""

from __future__ import annotations

import errno
import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from jobline_server.auth.tls_files import TlsFiles, WrongTlsFiles
from tests.server.authorities import HOST, Files, context_of


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Files:
    found = Files(tmp_path)
    found.write(authority.issue_cert(HOST))
    authority.cert_pem.write_to_path(found.client_ca)
    return found


def tls_of(files: Files) -> TlsFiles:
    return TlsFiles(files.certificate, files.key, files.client_ca)


def test_an_empty_file_of_authorities_is_refused(files: Files) -> None:
    """A full disk leaves one. The HTTP port asked nobody for a certificate then."""
    tls, before = tls_of(files), files.client_ca.read_bytes()
    files.client_ca.write_bytes(b"")
    with pytest.raises(WrongTlsFiles, match="has no certificates"):
        tls.reload()
    assert tls.now.client_ca == before
    with pytest.raises(WrongTlsFiles, match="has no certificates"):
        tls_of(files)


def refusal_of(files: Files) -> tuple[str, str]:
    """The setting that is named, and what is said, without the folder."""
    with pytest.raises(WrongTlsFiles) as caught:
        tls_of(files)
    return caught.value.setting, str(caught.value).replace(f"{files.folder}/", "")


@pytest.mark.parametrize("is_old", [False, True])
def test_a_key_with_a_passphrase_is_named(files: Files, is_old: bool) -> None:
    """OpenSSL says `PEM lib` of it. In both forms that a file may have."""
    form = PrivateFormat.TraditionalOpenSSL if is_old else PrivateFormat.PKCS8
    found = load_pem_private_key(files.key.read_bytes(), None)
    locked = found.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret"))
    files.key.write_bytes(locked)
    setting, said = refusal_of(files)
    assert setting == "tls_key"
    assert said == (
        "server.key: the key has a passphrase, for which a server cannot ask: write one without "
        "(openssl pkey -in server.key -out FILE)"
    )


def test_a_file_in_place_of_another_is_named(files: Files) -> None:
    certificate, key = files.certificate.read_bytes(), files.key.read_bytes()
    for first, second, setting, said in (
        (key, certificate, "tls_certificate", "server.pem holds a key, and server.key a certifica"),
        (key, key, "tls_certificate", "server.pem holds a key, and no certificate: name the file"),
        (b"", key, "tls_certificate", "server.pem has no certificate: name the file"),
        (certificate, certificate, "tls_key", "server.key holds a certificate, and no key: name"),
        (certificate, b"Dear", "tls_key", "server.key has no private key: name the file"),
    ):
        files.certificate.write_bytes(first)
        files.key.write_bytes(second)
        named, found = refusal_of(files)
        assert named == setting
        assert found.startswith(said), found


def test_a_certificate_and_a_key_of_another_are_said_to_be_that(
    files: Files, authority: trustme.CA
) -> None:
    """Both are right by themselves, so neither is called damaged."""
    files.key.write_bytes(authority.issue_cert(HOST).private_key_pem.bytes())
    _, said = refusal_of(files)
    assert said.startswith("server.pem and server.key do not belong together: ")


def test_a_damaged_certificate_is_said_to_be_that(files: Files) -> None:
    """Without the line of OpenSSL's source that found it."""
    content = files.certificate.read_bytes()
    files.certificate.write_bytes(content[: len(content) // 3])
    _, said = refusal_of(files)
    assert "one of them is damaged or half written" in said
    assert "_ssl.c" not in said


def test_a_half_written_certificate_leaves_the_old_one_in_use(
    files: Files, authority: trustme.CA
) -> None:
    """At whatever byte the writer stopped; it is taken once it is whole."""
    tls, old = tls_of(files), files.certificate.read_bytes()
    issued = authority.issue_cert(HOST)
    whole = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    files.key.write_bytes(issued.private_key_pem.bytes())
    for end in range(0, len(whole), 97):
        files.certificate.write_bytes(whole[:end])
        with pytest.raises(WrongTlsFiles):
            tls.reload()
        assert not tls.reload()
        assert tls.now.certificate == old
    files.certificate.write_bytes(whole)
    assert tls.reload()
    assert tls.now.certificate == whole
    assert not tls.reload()


def test_files_that_could_not_be_read_are_read_again(
    files: Files, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without descriptors for a moment, the old certificate was in use until it had ended."""
    tls = tls_of(files)
    files.write(authority.issue_cert(HOST))

    def none_left(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    with monkeypatch.context() as context:
        context.setattr(Path, "read_bytes", none_left)
        with pytest.raises(WrongTlsFiles, match="too many open files"):
            tls.reload()
        assert not tls.reload()
    assert tls.reload_failures == 1
    assert tls.reload()
    assert tls.now.certificate == files.certificate.read_bytes()


def test_a_change_at_the_start_is_seen(
    files: Files, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the files and looking when they were changed."""
    read = TlsFiles._read

    def changed_after(tls: TlsFiles) -> object:
        loaded = read(tls)
        files.write(authority.issue_cert(HOST))
        return loaded

    with monkeypatch.context() as context:
        context.setattr(TlsFiles, "_read", changed_after)
        tls = tls_of(files)
    assert tls.reload()
    assert tls.now.certificate == files.certificate.read_bytes()


def test_what_changes_while_it_is_read_is_not_taken(
    files: Files, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context reads the files by itself, and might have others than the rest."""
    tls, old = tls_of(files), files.certificate.read_bytes()
    files.write(authority.issue_cert(HOST))
    read = TlsFiles._read

    def changed_after(one: TlsFiles) -> object:
        loaded = read(one)
        files.write(authority.issue_cert(HOST))
        return loaded

    with monkeypatch.context() as context:
        context.setattr(TlsFiles, "_read", changed_after)
        assert not tls.reload()
    assert tls.now.certificate == old
    assert tls.reload()
    assert tls.now.certificate == files.certificate.read_bytes()


class Dialled:
    """A connection of a client to a listener's context, without a socket between them."""

    def __init__(
        self, listener: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None
    ) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._server = listener.wrap_bio(to_server, to_client, server_side=True)
        self._client = client.wrap_bio(to_client, to_server, server_hostname=HOST, session=session)
        # Both sides, in turn: a session comes with what is read after the handshake.
        for step in (self._client.do_handshake, self._server.do_handshake) * 4:
            try:
                step()
            except ssl.SSLWantReadError:
                continue
        self._server.write(b"y")
        assert self._client.read(1) == b"y"

    @property
    def session(self) -> ssl.SSLSession | None:
        """What the client may show the next time."""
        return self._client.session

    @property
    def is_resumed(self) -> bool:
        """Whether the server did not ask for a certificate."""
        return bool(self._server.session_reused)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_nobody_resumes_a_session_from_before_a_change(
    files: Files, authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    """Whose authority was taken out went on for hours with the ticket of an earlier connection."""
    tls = tls_of(files)
    client, listener = context_of(authority, authority.issue_cert("worker.example")), tls.context()
    client.minimum_version = client.maximum_version = version
    first = Dialled(listener, client, None)
    assert Dialled(listener, client, first.session).is_resumed
    trustme.CA().cert_pem.write_to_path(files.client_ca)
    assert tls.reload()
    with pytest.raises(ssl.SSLError):
        Dialled(listener, client, first.session)
    authority.cert_pem.write_to_path(files.client_ca)
    assert tls.reload()
    assert not Dialled(listener, client, first.session).is_resumed
