"""How a command reaches its server: the address, TLS, and the token that it shows.

A token is never on the command line, where every user of the machine can read it: it is in a file
or in JOBLINE_TOKEN. Everything is looked at before anything is sent, so that a mistake names the
file that has it; and no message has a token.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobline._channel import DEFAULT_TARGET
from jobline._identity import AUTHORIZATION, TLS_FILES, Tls, is_near, is_tls_off
from jobline.cli.exit_codes import UsageError

TOKEN_VARIABLE = "JOBLINE_TOKEN"
TOKEN_BYTES_MAX = 64 << 10
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a server is, and what it is shown. Its fields are the options of the same names."""

    server: str
    token_file: Path | None = None
    use_tls: bool = False
    tls_ca: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None

    @property
    def tls(self) -> bool | Tls:
        """TLS as a client takes it. A file alone turns it on. Raises UsageError for files that do
        not go together, or are none.
        """
        if self._is_off:
            return False
        certificate, key = self.client_certificate, self.client_key
        if certificate is None and key is not None:
            raise UsageError("--client-key needs --client-certificate, the certificate of the key")
        if certificate is not None and key is None:
            raise UsageError("--client-certificate needs --client-key, the key of the certificate")
        if not (self.use_tls or self.tls_ca or certificate):
            return False
        if self.tls_ca is not None:
            _check_authorities(self.tls_ca)
        if certificate is not None and key is not None:
            _check_pair(certificate, key)
        return Tls(self.tls_ca, certificate, key)

    @property
    def _is_off(self) -> bool:
        """Whether JOBLINE_TLS says no, and the command line does not ask for TLS."""
        files = (self.tls_ca, self.client_certificate, self.client_key)
        named = [os.environ.get(name) for name in TLS_FILES]
        is_asked = any(file and str(file) != name for file, name in zip(files, named, strict=True))
        return is_tls_off() and not (self.use_tls or is_asked)

    @property
    def token_source(self) -> str:
        """Where the token comes from, for messages."""
        return TOKEN_VARIABLE if self.token_file is None else f"--token-file {self.token_file}"

    @property
    def has_token(self) -> bool:
        """Whether a token is shown."""
        return self.token_file is not None or bool(os.environ.get(TOKEN_VARIABLE))

    @property
    def certificate_source(self) -> str:
        """Where the certificate comes from, for messages."""
        variable, found = TLS_FILES[1], str(self.client_certificate)
        source = variable if os.environ.get(variable) == found else "--client-certificate"
        return f"{source} {found}"

    def token(self) -> str | None:
        """Returns the token of now. Raises UsageError for a file that cannot be read, or in which
        there is something else.
        """
        if self.token_file is not None:
            return _token_in(_text_of(self.token_file), self.token_source)
        found = os.environ.get(TOKEN_VARIABLE, "")
        return _token_in(found, TOKEN_VARIABLE) if found else None

    def of_client(self) -> dict[str, Any]:
        """Returns the arguments of a `Client`. Raises UsageError for what does not go together."""
        if not self.server:
            raise UsageError(
                "--server is empty: give HOST:PORT, or leave it out for JOBLINE_SERVER and then "
                f"{DEFAULT_TARGET}"
            )
        tls, token = self.tls, self.token()
        if token and not tls and not is_near(self.server):
            raise UsageError(
                f"{self.server} is another host, and without TLS everybody on the way can read "
                f"the token of {self.token_source}: add --tls, or --tls-ca FILE"
            )
        return {"target": self.server, "token": token, "tls": tls}

    def of_worker(self) -> dict[str, Any]:
        """Returns the arguments of a `Worker`, which reads the file again when its token ends."""
        found = self.of_client()
        renewed: Callable[[], str | None] | None = self.token if self.token_file else None
        return found | ({"token": renewed} if renewed else {})

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Returns what a bare call sends."""
        token = self.token()
        return ((AUTHORIZATION, f"Bearer {token}"),) if token else ()


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(TOKEN_BYTES_MAX).decode("latin-1")
    except OSError as error:
        raise UsageError(f"--token-file {path}: {_why(error)}") from None


def _token_in(text: str, source: str) -> str:
    """Returns the one token of a text, without the end of its line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UsageError(f"{source} is empty: it should hold an API key or a JSON Web Token")
    if len(lines) > 1:
        raise UsageError(
            f"{source} has {len(lines)} lines, and a token is one: keep it in a file by itself"
        )
    if not _TOKEN.fullmatch(lines[0]):
        raise UsageError(f"{source} holds no token: that is one word of printable ASCII")
    return lines[0]


def _check_authorities(path: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise UsageError(f"--tls-ca {path} holds no certificates in PEM form") from None
    except OSError as error:
        raise UsageError(f"--tls-ca {path}: {_why(error)}") from None


def _check_pair(certificate: Path, key: Path) -> None:
    for option, path in (("--client-certificate", certificate), ("--client-key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise UsageError(f"{option} {path}: {_why(error)}") from None
    try:
        # Without a password OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, lambda: "-")
    except (ssl.SSLError, OSError):
        raise UsageError(
            f"--client-certificate {certificate} and --client-key {key} are no pair: a chain of "
            "certificates and its key, in PEM form, the key without a password"
        ) from None


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
