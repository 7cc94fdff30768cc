"""Finds the caller behind a token or a certificate.

A token that was accepted is kept, so that the next call with it costs one look-up. What was refused
is not kept, so nobody fills the memory with tokens of their own making.

The look-up compares no secret byte by byte with what is stored: a new API key is found by its
SHA-256, and a kept token by Python's hash of it, which is keyed by chance. Equal prefixes make
neither slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from jobline_server.auth.access_file import (
    AccessFile,
    Issuer,
    UnreadableFile,
    WrongAccessFile,
    read_access_file,
    until_ms,
)
from jobline_server.auth.api_keys import API_KEY, PREFIX, hash_of
from jobline_server.auth.fetching import fetch
from jobline_server.auth.file_marks import mark_of
from jobline_server.auth.grants import Caller, Grants
from jobline_server.auth.issuers import Fetch, IssuerKeys, check_token, issuer_of
from jobline_server.auth.key_sets import WrongKeySet
from jobline_server.auth.refused import (
    NotAuthenticated,
    Reason,
    expired,
    malformed,
    unknown,
)

SCHEME = "bearer "
# A token of an issuer with hundreds of groups has some kilobytes.
TOKEN_CHARACTERS_MAX = 8 << 10
# Tokens that are kept; the one that came first goes first.
KEPT_MAX = 10_000
# Callers by roles: of a file with many roles, tokens could name any of their combinations.
GRANTS_MAX = 1_000


class Rules:
    """One reading of the file. `issuers`: those of the reading before, whose keys are kept."""

    def __init__(
        self,
        file: AccessFile,
        clock: Callable[[], float],
        fetch_keys: Fetch,
        before: Mapping[str, IssuerKeys],
    ) -> None:
        self._file = file
        self._grants: dict[frozenset[str], Grants] = {}
        self.keys = {
            one.hash: (f"key:{key.name}", key.roles, until_ms(one.expires))
            for key in file.keys
            for one in key.hashes
        }
        self.certificates = {one.name: one.roles for one in file.certificates}
        self.issuers: dict[str, IssuerKeys] = {}
        for issuer in file.jwt:
            known = before.get(issuer.issuer)
            if known is None or known.issuer != issuer or issuer.jwks_url is None:
                known = _keys_of(issuer, fetch_keys, clock)
            self.issuers[issuer.issuer] = known

    def grants_of(self, roles: Iterable[str]) -> Grants:
        """Returns what callers with these roles may do; names of no role are left out."""
        known = frozenset(roles).intersection(self._file.roles)
        grants = self._grants.get(known)
        if grants is None:
            allowed = (
                (verb, one.queues)
                for role in sorted(known)
                for one in self._file.roles[role]
                for verb in one.verbs
            )
            grants = Grants(allowed)
            if len(self._grants) >= GRANTS_MAX:
                self._grants.clear()
            self._grants[known] = grants
        return grants


def _keys_of(issuer: Issuer, fetch_keys: Fetch, clock: Callable[[], float]) -> IssuerKeys:
    """Returns the keys of an issuer. Raises `WrongAccessFile` for a file that has none."""
    where = f"jwt ({issuer.name}).jwks_file: {issuer.jwks_file}"
    try:
        return IssuerKeys(issuer, fetch_keys, clock)
    except OSError as error:
        raise UnreadableFile(f"{where}: {(error.strerror or str(error)).lower()}") from None
    except WrongKeySet as wrong:
        raise WrongAccessFile(f"{where}: {wrong}") from None


def check_key_files(file: AccessFile) -> None:
    """Reads the keys of each issuer that has a file of them, as a server does at its start. Raises
    `WrongAccessFile`.
    """
    for issuer in file.jwt:
        _keys_of(issuer, fetch, lambda: 0.0)


class Authenticator:
    """Knows the callers of a file, and reads it again when it has changed. `wall_ms` is the time
    that keys and tokens end by; `clock` returns seconds and never goes back.

    Raises `WrongAccessFile` for a file that cannot be used.
    """

    def __init__(
        self,
        path: Path,
        wall_ms: Callable[[], int],
        clock: Callable[[], float],
        fetch_keys: Fetch = fetch,
    ) -> None:
        self._path = path
        self._wall_ms = wall_ms
        self._clock = clock
        self._fetch_keys = fetch_keys
        self._kept: dict[str, Caller] = {}
        self.known = self._kept.get
        """Returns the caller of a header that was accepted before, if it is kept; its time may be
        over.
        """
        self.reloads = 0
        self.reload_failures = 0
        self.is_wrong = False
        """Whether the file has mistakes since it was read last."""
        self._unread = ""
        # Looked at before it is read: a change meanwhile is seen the next time.
        self._paths = [path]
        self._rules = self._read({})
        self._state = self._look(self._paths)

    def _read(self, before: Mapping[str, IssuerKeys]) -> Rules:
        file = read_access_file(self._path)
        # Also where one of them turns out to be wrong: it is looked at again, then.
        self._paths = [self._path, *file.files()]
        return Rules(file, self._clock, self._fetch_keys, before)

    @property
    def kept(self) -> int:
        """Returns how many tokens are kept."""
        return len(self._kept)

    @property
    def takes_certificates(self) -> bool:
        """Returns whether callers may be known by their certificates."""
        return bool(self._rules.certificates)

    async def caller_of(self, authorization: str) -> Caller:
        """Returns the caller of a header `authorization`. Raises `NotAuthenticated`."""
        caller = self._kept.get(authorization)
        if caller is None:
            caller = await self._check(authorization)
            if len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[authorization] = caller
        if caller.until_ms is not None and caller.until_ms <= self._wall_ms():
            self._kept.pop(authorization, None)
            raise expired("the token has expired")
        return caller

    def certified(self, names: Iterable[str]) -> Caller:
        """Returns the caller whose certificate has these names. Raises `NotAuthenticated`."""
        for name in names:
            roles = self._rules.certificates.get(name)
            if roles is not None:
                return Caller(f"certificate:{name}"[:250], self._rules.grants_of(roles))
        raise unknown("no name of this certificate is one that the server knows")

    def check_form(self, authorization: str) -> str:
        """Returns the token of a header, if it looks like one. Raises `NotAuthenticated`."""
        if not authorization:
            raise required()
        scheme, token = authorization[: len(SCHEME)], authorization[len(SCHEME) :]
        if scheme.lower() != SCHEME:
            raise malformed("authorization must be: Bearer TOKEN")
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise malformed(f"a token has at most {TOKEN_CHARACTERS_MAX:,} characters")
        if not token.isascii() or not token.isprintable() or not token or " " in token:
            raise malformed("a token is one word of ASCII")
        if token.startswith(PREFIX):
            if not API_KEY.fullmatch(token):
                raise malformed("an API key is jl_ and 43 characters")
            if hash_of(token) not in self._rules.keys:
                raise unknown("no key of the server is this one")
        elif not self._rules.issuers:
            raise unknown("this server takes API keys")
        return token

    async def _check(self, authorization: str) -> Caller:
        rules = self._rules
        token = self.check_form(authorization)
        if token.startswith(PREFIX):
            principal, names, until = rules.keys[hash_of(token)]
            return Caller(principal, rules.grants_of(names), until)
        issuer, key_id, algorithm = issuer_of(token)
        keys = rules.issuers.get(issuer)
        if keys is None:
            raise unknown("no issuer of the server is this token's")
        claims = await check_token(token, keys, key_id, algorithm)
        principal = f"{keys.issuer.name}:{claims.subject}"
        if self._rules is not rules:
            # The rules were read again while keys were fetched.
            return await self._check(authorization)
        return Caller(principal, rules.grants_of(claims.roles), claims.until_ms)

    async def fetch_keys(self) -> None:
        """Fetches the keys of all issuers that have a URL."""
        await asyncio.gather(*(keys.fetch() for keys in self._rules.issuers.values()))

    async def reload(self) -> bool:
        """Reads the file again, in a thread, if it or one that it names has changed, or could not
        be read the last time; returns whether it did. Raises `WrongAccessFile`: what was known
        stays then.
        """
        state = self._look(self._paths)
        has_changed = state != self._state
        if not has_changed and not self._unread:
            return False
        try:
            # A file of some thousand keys takes half a second.
            self._rules = await asyncio.to_thread(self._read, self._rules.issuers)
        except WrongAccessFile as wrong:
            # A mistake is raised once for each change.
            self._state = self._look(self._paths)
            before, self._unread = self._unread, ""
            self.is_wrong = True
            if isinstance(wrong, UnreadableFile):
                self._unread = str(wrong)
                if not has_changed and before == self._unread:
                    return False
            self.reload_failures += 1
            raise
        self._unread = ""
        self._kept.clear()
        # It may have changed while it was read: then it is read again.
        self._state = state if len(state) == len(self._paths) else self._look(self._paths)
        self.reloads += 1
        self.is_wrong = False
        return True

    async def close(self) -> None:
        """Ends fetches under way."""
        for keys in self._rules.issuers.values():
            await keys.close()

    def _look(self, paths: list[Path]) -> list[object]:
        return [mark_of(path) for path in paths]


def required() -> NotAuthenticated:
    """Returns the refusal of a caller who shows nothing."""
    message = "this server asks who calls: send authorization: Bearer TOKEN"
    return NotAuthenticated(Reason.AUTH_REQUIRED, message)
