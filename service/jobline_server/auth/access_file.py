"""The file of keys, issuers, certificates and roles (TOML), which the setting `auth` names.

    [[roles.producer]]
    queues = ["mail-*"]
    verbs = ["push"]

    [[keys]]
    name = "shop"
    roles = ["producer"]
    hashes = [{ hash = "sha256:…", expires = 2027-01-01T00:00:00Z }]

An unknown name, a role that there is not, a number out of bounds: nothing is ignored, every mistake
is named with its place, up to ten of them, and a file with one is not used at all (G22).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from jobline_server.auth.api_keys import HASH
from jobline_server.auth.file_mistakes import NAME, NAME_SAID, said_of

FILE_BYTES_MAX = 4 << 20
ROLES_MAX, ENTRIES_MAX = 1_000, 10_000
# Of what there are a few. Each list has a bound: all mistakes of one are made before the first ten
# are shown, and no thread goes on meanwhile.
CHOICES_MAX = 100
# A file may have as many mistakes as lines, and a mistake may name what it is about.
MISTAKES_MAX = 10
MISTAKE_CHARACTERS_MAX = 400
GLOB = re.compile(r"[A-Za-z0-9._:*-]{1,256}")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Signatures that nobody can make with what the server knows: no HS256, and no "none".
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
Verb = Literal["push", "work", "read", "read_payload", "manage", "admin"]


class WrongAccessFile(Exception):
    """The file cannot be used; the message has a line for each of the first mistakes."""


class UnreadableFile(WrongAccessFile):
    """The file, or one that it names, cannot be read now, which may pass."""


def _name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(NAME_SAID)
    return value


def _glob(value: str) -> str:
    if not GLOB.fullmatch(value):
        raise ValueError("must be the name of a queue, in which * stands for any characters")
    return value


def _hash(value: str) -> str:
    if not HASH.fullmatch(value):
        raise ValueError("must be sha256: and 64 hexadecimal digits, as `jobline auth` prints them")
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not is_safe or not parts.hostname:
        raise ValueError("must be an https URL; http is for this host alone")
    return value


def _file(value: Path) -> Path:
    if "\0" in str(value):
        raise ValueError("must be the path of a file, which has no NUL")
    return value


Name = Annotated[str, AfterValidator(_name)]
Glob = Annotated[str, AfterValidator(_glob)]
Url = Annotated[str, AfterValidator(_url)]
RoleNames = Annotated[list[Name], Field(min_length=1, max_length=100)]


class Table(BaseModel):
    """A table of the file; an unknown name in it is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Permission(Table):
    """Verbs that are allowed on queues."""

    queues: list[Glob] = Field(min_length=1, max_length=1_000)
    verbs: list[Verb] = Field(min_length=1, max_length=CHOICES_MAX)


Permissions = Annotated[list[Permission], Field(max_length=ENTRIES_MAX)]


class KeyHash(Table):
    """The hash of an API key, and when it ends."""

    hash: Annotated[str, AfterValidator(_hash)]
    expires: AwareDatetime | None = None


class ApiKey(Table):
    """An API key. Two hashes are for a change: the new one is added, the old one ends later."""

    name: Name
    roles: RoleNames
    hashes: list[KeyHash] = Field(min_length=1, max_length=2)


class Issuer(Table):
    """An issuer of JSON Web Tokens."""

    name: Name = "jwt"
    issuer: str = Field(min_length=1, max_length=2_000)
    audience: str = Field(min_length=1, max_length=2_000)
    algorithms: list[Algorithm] = Field(min_length=1, max_length=CHOICES_MAX)
    jwks_file: Annotated[Path, AfterValidator(_file)] | None = None
    jwks_url: Url | None = None
    roles_claim: str = Field(default="roles", min_length=1, max_length=200)
    leeway_seconds: int = Field(default=30, ge=0, le=300)

    @model_validator(mode="after")
    def _sources(self) -> Self:
        if self.name in {"key", "certificate"}:
            raise ValueError("may not be called key or certificate: those are other callers")
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("needs one of jwks_file and jwks_url")
        return self


class Certificate(Table):
    """Clients with a certificate of this name: a SAN (DNS, URI or e-mail), or, where a certificate
    has no SAN of any kind, its common name.
    """

    name: str = Field(min_length=1, max_length=1_000)
    roles: RoleNames


class AccessFile(Table):
    """The whole file."""

    roles: dict[Name, Permissions] = Field(default={}, max_length=ROLES_MAX)
    keys: list[ApiKey] = Field(default=[], max_length=ENTRIES_MAX)
    jwt: list[Issuer] = Field(default=[], max_length=100)
    certificates: list[Certificate] = Field(default=[], max_length=ENTRIES_MAX)

    def files(self) -> Iterator[Path]:
        """Yields the other files that it names."""
        for issuer in self.jwt:
            if issuer.jwks_file is not None:
                yield issuer.jwks_file


# By the names of the tables that they are in: `roles.NAME` is one, `keys.hashes` another.
_TABLES: dict[tuple[str, ...], type[Table]] = {
    (): AccessFile,
    ("roles",): Permission,
    ("keys",): ApiKey,
    ("keys", "hashes"): KeyHash,
    ("jwt",): Issuer,
    ("certificates",): Certificate,
}


def _names_at(place: Sequence[str | int]) -> Collection[str]:
    """Returns the names that a table at a place may have."""
    steps = place[:1] if place[:1] == ("roles",) else place
    table = _TABLES.get(tuple(step for step in steps if isinstance(step, str)))
    return table.model_fields if table else ()


def read_access_file(path: Path) -> AccessFile:
    """Returns the file at a path. Relative paths in it are relative to its folder. Raises
    `WrongAccessFile`, which is `UnreadableFile` where that may pass.
    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise WrongAccessFile(f"{path}: has more than {FILE_BYTES_MAX >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFile(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise WrongAccessFile(f"{path}: is not TOML: {error}") from None
    return _placed(check_access_text(text, f"{path}: "), path.parent)


def check_access_text(text: str, before: str = "") -> AccessFile:
    """Returns what a text says. Raises `WrongAccessFile`, with `before` at the start of its
    lines.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(before, [f"is not TOML: {error}"], 1) from None
    except RecursionError:
        raise _wrong(before, ["is not TOML: it is nested too deeply"], 1) from None
    except ValueError:  # Python reads numbers of up to 4,300 digits
        raise _wrong(before, ["is not TOML: a number has too many digits"], 1) from None
    try:
        file = AccessFile.model_validate(tables)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        mistakes = (said_of(problem, tables, _names_at) for problem in problems)
        raise _wrong(before, mistakes, len(problems)) from None
    found = list(_mistakes_of(file))
    if found:
        raise _wrong(before, found, len(found))
    return file


def _wrong(before: str, mistakes: Iterable[str], count: int) -> WrongAccessFile:
    """Returns the error of a file with so many mistakes."""
    lines = [f"{before}{_short(mistake)}" for mistake in islice(mistakes, MISTAKES_MAX)]
    if count > len(lines):
        lines.append(f"{before}{count - len(lines):,} more mistakes")
    return WrongAccessFile("\n".join(lines))


def _short(mistake: str) -> str:
    if len(mistake) <= MISTAKE_CHARACTERS_MAX:
        return mistake
    half = MISTAKE_CHARACTERS_MAX // 2
    return f"{mistake[:half]}…{mistake[-half:]}"


def _placed(file: AccessFile, folder: Path) -> AccessFile:
    issuers = [
        one
        if one.jwks_file is None
        else one.model_copy(update={"jwks_file": folder / one.jwks_file})
        for one in file.jwt
    ]
    return file.model_copy(update={"jwt": issuers})


def _mistakes_of(file: AccessFile) -> Iterator[str]:
    """Yields the mistakes of parts that do not go together."""
    if not (file.keys or file.jwt or file.certificates):
        yield "has no keys, jwt or certificates: nobody could call"
    named: dict[str, Sequence[ApiKey | Certificate]] = {
        "keys": file.keys,
        "certificates": file.certificates,
    }
    for kind, entries in named.items():
        for at, entry in enumerate(entries):
            for number, role in enumerate(entry.roles):
                if role not in file.roles:
                    yield f"{kind}[{at}] ({entry.name}).roles[{number}]: there is no role {role}"
    yield from _repeated("keys", "name", [key.name for key in file.keys])
    yield from _repeated("jwt", "name", [one.name for one in file.jwt])
    yield from _repeated("jwt", "issuer", [one.issuer for one in file.jwt])
    yield from _repeated("certificates", "name", [one.name for one in file.certificates])
    hashes = [one.hash for key in file.keys for one in key.hashes]
    if len(set(hashes)) < len(hashes):
        yield "keys: a hash is there twice: each key has hashes of its own"


def _repeated(kind: str, field: str, values: list[str]) -> Iterator[str]:
    first: dict[str, int] = {}
    for at, value in enumerate(values):
        if first.setdefault(value, at) != at:
            yield f"{kind}[{at}].{field}: {value} is that of {kind}[{first[value]}], too"


def until_ms(expires: datetime | None) -> int | None:
    """Returns when something ends, as a wall time; None: never."""
    return None if expires is None else int(expires.timestamp() * 1_000)
