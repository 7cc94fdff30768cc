"""Checks JSON Web Tokens against the issuers of the file.

A token must have an issuer, an audience, a subject and an end, and a signature by an algorithm that
the file allows, with a key that is for it. The key set of a file is read with the file; that of a
URL is fetched, kept, and fetched again when it is old, or a token names a key that is not in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import jwt
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidSignatureError,
    MissingRequiredClaimError,
    PyJWTError,
)

from jobline_server.auth.access_file import Issuer
from jobline_server.auth.key_sets import PublicKey, WrongKeySet, read_keys
from jobline_server.auth.refused import NotAuthenticated, Reason, expired, malformed, unknown
from jobline_server.telemetry.log import logger

LOG = logger("auth")

FETCH_SECONDS = 5.0
# Keys are fetched again after this long, and sooner for a key id that is not known: a token may be
# made up, so not more often than this.
OLD_SECONDS = 300.0
FETCH_PAUSE_SECONDS = 10.0
SUBJECT_CHARACTERS_MAX = 200
ROLES_MAX = 100
# The end of the year 9999.
END_SECONDS_MAX = 253_402_300_799
REQUIRED = ["exp", "iss", "aud", "sub"]

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns what is at a URL, bounded in size and time."""


class Claims(NamedTuple):
    """What a token says: its subject, the names of roles, and when it ends, as a wall time."""

    subject: str
    roles: tuple[str, ...]
    until_ms: int


class IssuerKeys:
    """The keys of one issuer. `clock` returns seconds and never goes back."""

    def __init__(self, issuer: Issuer, fetch: Fetch, clock: Callable[[], float]) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: list[PublicKey] = []
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        if issuer.jwks_file is not None:
            self._keys = read_keys(issuer.jwks_file.read_bytes())

    def find(self, key_id: str, algorithm: str) -> PublicKey | None:
        """Returns the key with an id. A token without one is of the only key for its algorithm."""
        fitting = [key for key in self._keys if algorithm in key.algorithms]
        if key_id:
            return next((key for key in fitting if key.id == key_id), None)
        return fitting[0] if len(fitting) == 1 else None

    async def find_or_fetch(self, key_id: str, algorithm: str) -> PublicKey:
        """Returns a key, if need be after the set was fetched. Raises `NotAuthenticated`."""
        found = self.find(key_id, algorithm)
        if self.issuer.jwks_url is None or (found is not None and not self._is_old()):
            return self._existing(found)
        fetching = self._fetch_once()
        if found is None and fetching is not None:
            # All that need it wait for the same fetch; who gives up does not end it for the others.
            await asyncio.shield(fetching)
            found = self.find(key_id, algorithm)
        return self._existing(found)

    def _existing(self, found: PublicKey | None) -> PublicKey:
        if found is not None:
            return found
        if not self._keys:
            message = "the keys of this token's issuer cannot be fetched at the moment"
            raise NotAuthenticated(Reason.AUTH_UNAVAILABLE, message)
        raise unknown("the token is signed with a key that its issuer does not list")

    def _is_old(self) -> bool:
        return self._fetched_at is None or self._clock() - self._fetched_at >= OLD_SECONDS

    def _fetch_once(self) -> asyncio.Task[None] | None:
        """Returns the fetch under way, or a new one unless the last one was just now."""
        if self._fetching is None:
            tried = self._tried_at
            if tried is not None and self._clock() - tried < FETCH_PAUSE_SECONDS:
                return None
            self._fetching = asyncio.create_task(self.fetch())
            self._fetching.add_done_callback(self._forget)
        return self._fetching

    def _forget(self, _task: object) -> None:
        self._fetching = None

    async def fetch(self) -> None:
        """Fetches the set. Where that fails, the keys that are known stay."""
        url = self.issuer.jwks_url
        if url is None:
            return
        self._tried_at = self._clock()
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                self._keys = read_keys(await self._fetch(url))
        except Exception as error:  # noqa: BLE001  # whatever an issuer does is its failure
            why = str(error) if isinstance(error, WrongKeySet) else type(error).__name__
            LOG.warning("keys not fetched", issuer=self.issuer.issuer, url=url, why=why)
        else:
            self._fetched_at = self._clock()

    async def close(self) -> None:
        """Ends a fetch under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)


def issuer_of(token: str) -> tuple[str, str, str]:
    """Returns issuer, key id and algorithm of a token that is not checked yet. Raises
    `NotAuthenticated`.
    """
    try:
        unchecked = jwt.decode_complete(token, options={"verify_signature": False})
    except (PyJWTError, ValueError, TypeError, RecursionError):
        raise malformed("the token is neither an API key nor a JSON Web Token") from None
    header, claims = unchecked["header"], unchecked["payload"]
    found = claims.get("iss"), header.get("kid", ""), header.get("alg")
    issuer, key_id, algorithm = found
    if isinstance(issuer, str) and isinstance(key_id, str) and isinstance(algorithm, str):
        return issuer, key_id, algorithm
    raise malformed("the token has no issuer, or no algorithm")


async def check_token(token: str, keys: IssuerKeys, key_id: str, algorithm: str) -> Claims:
    """Returns what a token of this issuer says, checked. Raises `NotAuthenticated`."""
    issuer = keys.issuer
    if algorithm not in issuer.algorithms:
        raise unknown("the token is signed by an algorithm that is not allowed for its issuer")
    key = await keys.find_or_fetch(key_id, algorithm)
    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=issuer.leeway_seconds,
            options={"require": REQUIRED},
        )
        until_ms = _until_ms(claims["exp"], issuer.leeway_seconds)
    except ExpiredSignatureError:
        raise expired("the token has expired") from None
    except ImmatureSignatureError:
        raise unknown("the token is not valid yet") from None
    except InvalidAudienceError:
        raise unknown("the token is for another audience") from None
    except InvalidSignatureError:
        raise unknown("the signature of the token is wrong") from None
    except MissingRequiredClaimError as error:
        raise malformed(f"the token has no claim {error.claim}") from None
    except (PyJWTError, ValueError, TypeError, OverflowError):
        raise malformed("the token or one of its claims is malformed") from None
    return Claims(_subject(claims["sub"]), tuple(_roles(claims, issuer.roles_claim)), until_ms)


def _until_ms(end: Any, leeway_seconds: int) -> int:
    seconds = int(end)
    if seconds > END_SECONDS_MAX:
        raise ValueError("after the year 9999")
    return (seconds + leeway_seconds) * 1_000


def _subject(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and 0 < len(value) <= SUBJECT_CHARACTERS_MAX:
        return value
    raise malformed(f"the subject must be 1 to {SUBJECT_CHARACTERS_MAX} printable characters")


def _roles(claims: dict[str, Any], path: str) -> list[str]:
    """Returns the names in a claim: a list, or a text with spaces. A path has dots for claims in
    claims, unless there is a claim whose name has them.
    """
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, list):
        return []
    return [name for name in value[:ROLES_MAX] if isinstance(name, str)]
