"""Callers by their tokens: those that are known, and the many ways not to be."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobline_server.auth.access_file import WrongAccessFile
from jobline_server.auth.api_keys import hash_of, key_of
from jobline_server.auth.authenticator import KEPT_MAX, Authenticator
from jobline_server.auth.grants import PUSH, READ
from jobline_server.auth.issuers import FETCH_PAUSE_SECONDS
from jobline_server.auth.refused import NotAuthenticated
from tests.unit.auth.tokens import Issuer, issuer_lines

KEY, OLD = key_of(bytes(32)), key_of(bytes(range(32)))
ROLES = '[[roles.all]]\nqueues = ["*"]\nverbs = ["push"]\n'
KEYS = (
    '[[keys]]\nname = "shop"\nroles = ["all"]\nhashes = ['
    f'{{ hash = "{hash_of(KEY)}" }}, '
    f'{{ hash = "{hash_of(OLD)}", expires = 2020-01-01T00:00:00Z }}]\n'
)


class World:
    """An authenticator with an issuer whose keys are fetched."""

    def __init__(self, folder: Path, text: str = "") -> None:
        self.issuer = Issuer()
        self.path = folder / "auth.toml"
        source = 'jwks_url = "https://id.example/keys"'
        self.path.write_text(text or ROLES + KEYS + issuer_lines(source))
        self.seconds = 0.0
        self.fetches = 0
        self.fetched: Callable[[], bytes] = self.issuer.jwks
        self.callers = Authenticator(
            self.path, lambda: int(time.time() * 1_000), lambda: self.seconds, self._fetch
        )

    async def _fetch(self, url: str) -> bytes:
        self.fetches += 1
        await asyncio.sleep(0)
        return self.fetched()

    async def refused(self, token: str) -> str:
        with pytest.raises(NotAuthenticated) as caught:
            await self.callers.caller_of(token)
        return caught.value.reason.value


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_an_api_key(world: World) -> None:
    caller = await world.callers.caller_of(f"Bearer {KEY}")
    assert caller.principal == "key:shop"
    assert caller.may(PUSH, "mail")
    assert not caller.may(READ, "mail")
    assert world.callers.known(f"Bearer {KEY}") is caller


async def test_an_api_key_ends(world: World) -> None:
    assert await world.refused(f"Bearer {OLD}") == "TOKEN_EXPIRED"
    assert await world.refused(f"Bearer {OLD}") == "TOKEN_EXPIRED"


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("", "AUTH_REQUIRED"),
        ("Basic abc", "TOKEN_MALFORMED"),
        ("Bearer", "TOKEN_MALFORMED"),
        ("Bearer ", "TOKEN_MALFORMED"),
        (f"Bearer  {KEY}", "TOKEN_MALFORMED"),
        (f"Bearer {KEY} ", "TOKEN_MALFORMED"),
        (f"Bearer {KEY}, Bearer {KEY}", "TOKEN_MALFORMED"),
        (f"Bearer {KEY}\x00", "TOKEN_MALFORMED"),
        (f"Bearer {KEY}\n", "TOKEN_MALFORMED"),
        (f"Bearer {KEY}é", "TOKEN_MALFORMED"),
        (f"Bearer {KEY[:-1]}", "TOKEN_MALFORMED"),
        (f"Bearer {KEY[:-1]}-", "TOKEN_UNKNOWN"),
        ("Bearer " + "x" * 9_000, "TOKEN_MALFORMED"),
        ("Bearer a.b.c", "TOKEN_MALFORMED"),
        ("Bearer " + "[" * 5_000, "TOKEN_MALFORMED"),
        ("Bearer " + ".".join([base64.b64encode(b"[" * 3_000).decode()] * 2), "TOKEN_MALFORMED"),
    ],
)
async def test_what_is_no_token(world: World, header: str, reason: str) -> None:
    assert await world.refused(header) == reason
    assert world.callers.kept == 0


async def test_a_token_of_an_issuer(world: World) -> None:
    caller = await world.callers.caller_of(f"Bearer {world.issuer.token()}")
    assert caller.principal == "jwt:alice"
    assert caller.may(PUSH, "mail")
    assert caller.until_ms is not None
    assert world.fetches == 1


async def test_roles_that_the_file_does_not_have_are_none(world: World) -> None:
    token = world.issuer.token(roles="admin root")
    caller = await world.callers.caller_of(f"Bearer {token}")
    assert not caller.may(PUSH, "mail")


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "others"}, "TOKEN_UNKNOWN"),
        ({"aud": None}, "TOKEN_MALFORMED"),
        ({"iss": "https://evil.example"}, "TOKEN_UNKNOWN"),
        ({"iss": None}, "TOKEN_MALFORMED"),
        ({"exp": None}, "TOKEN_MALFORMED"),
        ({"exp": "soon"}, "TOKEN_MALFORMED"),
        ({"exp": 1e300}, "TOKEN_MALFORMED"),
        ({"sub": None}, "TOKEN_MALFORMED"),
        ({"sub": ""}, "TOKEN_MALFORMED"),
        ({"sub": "a\nb"}, "TOKEN_MALFORMED"),
        ({"sub": "x" * 300}, "TOKEN_MALFORMED"),
        ({"sub": 7}, "TOKEN_MALFORMED"),
        ({"nbf": 4_000_000_000}, "TOKEN_UNKNOWN"),
        ({"seconds": -1}, "TOKEN_EXPIRED"),
    ],
)
async def test_claims_that_are_wrong(world: World, claims: dict, reason: str) -> None:
    assert await world.refused(f"Bearer {world.issuer.token(**claims)}") == reason
    assert world.callers.kept == 0


async def test_a_token_without_a_signature(world: World) -> None:
    """`alg` none, in any spelling."""
    body = world.issuer.token().split(".")[1]
    for spelt in ("none", "None", "NONE"):
        for signature in ("", "c2ln"):
            token = f"{part({'alg': spelt, 'kid': 'rsa-1'})}.{body}.{signature}"
            assert await world.refused(f"Bearer {token}") in {"TOKEN_UNKNOWN", "TOKEN_MALFORMED"}


def part(value: object) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_a_token_signed_with_the_public_key(world: World) -> None:
    """HS256, with what everybody knows as its secret."""
    head = part({"alg": "HS256", "kid": "rsa-1", "typ": "JWT"})
    claims = {"iss": "https://id.example", "aud": "jobs", "sub": "x", "exp": 4_000_000_000}
    body = f"{head}.{part(claims)}"
    for secret in (world.issuer.public_pem(), world.issuer.jwks()):
        signature = hmac.new(secret, body.encode(), hashlib.sha256).digest()
        token = f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
        assert await world.refused(f"Bearer {token}") == "TOKEN_UNKNOWN"


async def test_a_token_of_another_key_with_the_same_id(world: World) -> None:
    token = Issuer().token()
    assert await world.refused(f"Bearer {token}") == "TOKEN_UNKNOWN"


async def test_a_key_is_for_its_algorithm(world: World) -> None:
    """A token says which algorithm and which key; they must go together."""
    world.issuer.rotate("ec-1", "EC")
    token = world.issuer.token("ec-1", "ES256")
    assert (await world.callers.caller_of(f"Bearer {token}")).principal == "jwt:alice"
    mixed = ".".join([part({"alg": "RS256", "kid": "ec-1"}), *token.split(".")[1:]])
    assert await world.refused(f"Bearer {mixed}") == "TOKEN_UNKNOWN"


async def test_keys_of_the_issuer_change(world: World) -> None:
    """A key id that is not known is looked for once, and then not again for a while."""
    await world.callers.caller_of(f"Bearer {world.issuer.token()}")
    world.issuer.rotate("rsa-2")
    token = f"Bearer {world.issuer.token('rsa-2')}"
    assert await world.refused(token) == "TOKEN_UNKNOWN"
    world.seconds += FETCH_PAUSE_SECONDS
    assert (await world.callers.caller_of(token)).principal == "jwt:alice"
    for number in range(1_000):
        world.issuer.keys["made-up"] = world.issuer.keys["rsa-1"]
        made_up = world.issuer.token("made-up", sub=str(number)) if number < 3 else token[:-1]
        await world.refused(f"Bearer {made_up}")
    assert world.fetches == 2


async def test_many_wait_for_one_fetch(world: World) -> None:
    tokens = [f"Bearer {world.issuer.token(sub=f'w{number}')}" for number in range(20)]
    callers = await asyncio.gather(*map(world.callers.caller_of, tokens))
    assert len({caller.principal for caller in callers}) == 20
    assert world.fetches == 1


async def test_an_issuer_that_is_down(world: World) -> None:
    """Before its keys are known, its tokens are refused as for a time; after that they are kept."""

    def down() -> bytes:
        raise OSError("down")

    world.fetched = down
    token = f"Bearer {world.issuer.token()}"
    assert await world.refused(token) == "AUTH_UNAVAILABLE"
    world.fetched = world.issuer.jwks
    world.seconds += FETCH_PAUSE_SECONDS
    await world.callers.caller_of(token)
    world.fetched = down
    world.seconds += 10_000
    await world.callers.caller_of(f"Bearer {world.issuer.token(sub='bob')}")


async def test_a_set_of_keys_that_is_none(world: World) -> None:
    secret = json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "rsa-1"}]}).encode()
    for text in (b"", b"[]", b'{"keys": 7}', b"x" * 300_000, b"[" * 100_000, secret):
        world.fetched = lambda text=text: text  # type: ignore[misc]  # its own text
        world.seconds += FETCH_PAUSE_SECONDS
        assert await world.refused(f"Bearer {world.issuer.token()}") == "AUTH_UNAVAILABLE"


async def test_a_hundred_thousand_tokens(world: World) -> None:
    """What was refused is not kept, and what was taken is bounded."""
    for number in range(100_000):
        made_up = key_of(hashlib.sha256(str(number).encode()).digest())
        with pytest.raises(NotAuthenticated):
            await world.callers.caller_of(f"Bearer {made_up}")
    assert world.callers.kept == 0
    for number in range(KEPT_MAX):
        world.callers._kept[str(number)] = await world.callers.caller_of(f"Bearer {KEY}")
    assert world.callers.kept <= KEPT_MAX + 1
    await world.callers.caller_of(f"bearer {KEY}")
    assert world.callers.kept <= KEPT_MAX + 1


async def test_the_file_is_read_again(world: World) -> None:
    await world.callers.caller_of(f"Bearer {KEY}")
    assert not await world.callers.reload()
    world.path.write_text("keys = wrong")
    with pytest.raises(WrongAccessFile):
        await world.callers.reload()
    assert world.callers.reload_failures == 1
    assert not await world.callers.reload()
    assert (await world.callers.caller_of(f"Bearer {KEY}")).principal == "key:shop"
    world.path.write_text(ROLES + KEYS.replace(hash_of(KEY), hash_of("other")))
    assert await world.callers.reload()
    assert (world.callers.reloads, world.callers.is_wrong) == (1, False)
    assert await world.refused(f"Bearer {KEY}") == "TOKEN_UNKNOWN"
    world.path.unlink()
    with pytest.raises(WrongAccessFile, match="no such file"):
        await world.callers.reload()


async def test_keys_of_a_file(tmp_path: Path) -> None:
    issuer = Issuer()
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.jwks())
    text = ROLES + issuer_lines('jwks_file = "keys.json"', name="staff", roles_claim="a.b")
    world = World(tmp_path, text)
    token = issuer.token(roles=None, a={"b": ["all"]})
    caller = await world.callers.caller_of(f"Bearer {token}")
    assert caller.principal == "staff:alice"
    assert caller.may(PUSH, "mail")
    later = Issuer()
    keys.write_bytes(later.jwks())
    assert await world.callers.reload()
    assert await world.refused(f"Bearer {token}") == "TOKEN_UNKNOWN"
    keys.write_text("none")
    with pytest.raises(WrongAccessFile, match="is no JSON Web Key Set"):
        await world.callers.reload()


async def test_certificates_by_their_names(tmp_path: Path) -> None:
    text = ROLES + '[[certificates]]\nname = "worker.example"\nroles = ["all"]\n'
    callers = World(tmp_path, text).callers
    caller = callers.certified(["other", "worker.example"])
    assert caller.principal == "certificate:worker.example"
    with pytest.raises(NotAuthenticated, match="no name of this certificate"):
        callers.certified(["other", "worker.example.evil"])
