"""What a client shows a server, and what it trusts: a token, and TLS.

Where an argument is not given, the environment says it: JOBLINE_TOKEN, and JOBLINE_TLS (1: by the
roots of the system), JOBLINE_TLS_CA, JOBLINE_CLIENT_CERTIFICATE and JOBLINE_CLIENT_KEY, which are
PEM files and turn TLS on, too, unless JOBLINE_TLS is 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from jobline._arguments import refuse
from jobline._channel import credentials_of, metadata_of
from jobline.errors import Unavailable

Token = str | Callable[[], str]
"""A token, or what returns the token of now: it is called for each call, so it should keep one."""

AUTHORIZATION = "authorization"
YES, NO = frozenset({"1", "true", "yes", "on"}), frozenset({"", "0", "false", "no", "off"})
# Targets that do not leave this host.
_NEAR = re.compile(
    r"(dns:(///)?|ipv4:|ipv6:)?(localhost|127(\.\d{1,3}){3}|\[::1\]|\[::ffff:127\.0\.0\.1\])(:\d+)?"
)


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to a server. All are PEM files.

    - `ca`: the authorities that the server's certificate is checked by; None: those of the system.
    - `certificate`, `key`: shown to servers that ask clients for one; both or none.
    """

    ca: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Returns the credentials of a channel. Raises InvalidArgument for files that cannot be
        read.
        """
        if (self.certificate is None) != (self.key is None):
            refuse("tls", "a certificate needs its key, and a key its certificate")
        return grpc.ssl_channel_credentials(
            _read("ca", self.ca), _read("key", self.key), _read("certificate", self.certificate)
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """What goes with each call. `fixed`: metadata that never changes. `token` has no value in
    texts.
    """

    credentials: grpc.ChannelCredentials | None = None
    fixed: tuple[tuple[str, str], ...] = ()
    token: Token | None = field(default=None, repr=False)

    @property
    def is_renewable(self) -> bool:
        """Returns whether another token may follow one that has ended."""
        return callable(self.token)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a call that begins now. Raises Unavailable where `token` did
        not return one: nothing was sent.
        """
        if self.token is None:
            return self.fixed
        return (*self.fixed, (AUTHORIZATION, f"Bearer {self._now(self.token)}"))

    def _now(self, token: Token) -> str:
        if isinstance(token, str):
            return token
        why = "is no text of printable ASCII"
        try:
            found = token()
        except Exception as error:  # noqa: BLE001  # it is the user's, and asks another server
            why = f"raised {type(error).__name__}"
        else:
            if _is_token(found):
                return found
        raise Unavailable(f"token= {why}: the call was not sent")


def identity_of(
    target: str,
    credentials: grpc.ChannelCredentials | None,
    metadata: Mapping[str, str] | None,
    token: Token | None,
    tls: bool | Tls | None,
    *,
    insecure_token: bool,
) -> Identity:
    """Returns what a client shows. Raises InvalidArgument for what does not go together, and for a
    token that would go over a network in plaintext.
    """
    found = credentials_of(credentials)
    if found is None:
        found = _tls_credentials(tls)
    elif tls:
        refuse("tls", "credentials= has it: give one of both")
    fixed = metadata_of(metadata)
    has_own = any(name == AUTHORIZATION for name, _ in fixed)
    if token is None:
        token = "" if has_own else os.environ.get("JOBLINE_TOKEN", "")
        if not token:
            return Identity(found, fixed)
        # A Secret that was made of a file ends with a line.
        token = token.strip()
    elif has_own:
        refuse("token", "metadata= has an authorization: give one of both")
    if not callable(token) and not _is_token(token):
        refuse("token", "must be one word of printable ASCII, or a function that returns it")
    if found is None and not insecure_token and not is_near(target):
        refuse(
            "token",
            f"{target} is another host, and without TLS everybody on the way can read a token: "
            "give tls=True (JOBLINE_TLS=1), or insecure_token=True",
        )
    return Identity(found, fixed, token)


def is_near(target: str) -> bool:
    """Returns whether a target is on this host."""
    return target.startswith(("unix:", "unix-abstract:")) or bool(_NEAR.fullmatch(target.lower()))


def _is_token(value: object) -> bool:
    return (
        isinstance(value, str)
        and bool(value)
        and value.isascii()
        and value.isprintable()
        and " " not in value
    )


def _tls_credentials(tls: bool | Tls | None) -> grpc.ChannelCredentials | None:
    if tls is None:
        tls = _tls_of_environment()
    if isinstance(tls, Tls):
        return tls.credentials()
    return Tls().credentials() if tls else None


# JOBLINE_TLS_CERTIFICATE and JOBLINE_TLS_KEY are settings of a server, which may be beside it.
TLS_FILES = ("JOBLINE_TLS_CA", "JOBLINE_CLIENT_CERTIFICATE", "JOBLINE_CLIENT_KEY")


def is_tls_off() -> bool:
    """Returns whether the environment says expressly that there is no TLS, whatever files it has
    for it.
    """
    return os.environ.get("JOBLINE_TLS", "").lower() in NO - {""}


def _tls_of_environment() -> bool | Tls:
    wanted = os.environ.get("JOBLINE_TLS", "").lower()
    if wanted not in YES | NO:
        refuse("JOBLINE_TLS", "must be 1 or 0")
    ca, certificate, key = (os.environ.get(name) or None for name in TLS_FILES)
    if is_tls_off() or not (ca or certificate or key or wanted in YES):
        return False
    return Tls(ca, certificate, key)


def _read(what: str, path: str | os.PathLike[str] | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        refuse("tls", f"{what}: {path}: {(error.strerror or str(error)).lower()}")
