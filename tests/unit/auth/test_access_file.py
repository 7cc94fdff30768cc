"""The file of keys and roles: each mistake is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.auth.access_file import (
    MISTAKE_CHARACTERS_MAX,
    MISTAKES_MAX,
    WrongAccessFile,
    read_access_file,
)
from jobline_server.auth.api_keys import API_KEY, hash_of, key_of

HASH = hash_of("jl_x")
ROLE = '[[roles.all]]\nqueues = ["*"]\nverbs = ["push"]\n'
KEY = f'[[keys]]\nname = "shop"\nroles = ["all"]\nhashes = [{{ hash = "{HASH}" }}]\n'
ISSUER = (
    '[[jwt]]\nissuer = "https://id.example"\naudience = "jobs"\nalgorithms = ["RS256"]\n'
    'jwks_url = "https://id.example/keys"\n'
)


def mistakes(tmp_path: Path, text: str) -> str:
    path = tmp_path / "auth.toml"
    path.write_text(text)
    with pytest.raises(WrongAccessFile) as caught:
        read_access_file(path)
    return str(caught.value).replace(f"{path}: ", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no keys, jwt or certificates: nobody could call"),
        ("keys = [", "is not TOML"),
        (ROLE + KEY + "other = 1", "keys[0] (shop).other: no such name"),
        (ROLE + KEY + 'role = ["all"]', "keys[0] (shop).role: no such name (did you mean roles?)"),
        (ROLE + "verb = 1\n" + KEY, "roles.all[0].verb: no such name (did you mean verbs?)"),
        (
            ROLE + KEY.replace("hash =", "hsh ="),
            "keys[0] (shop).hashes[0].hsh: no such name (did you mean hash?)",
        ),
        ("[[role.all]]\n" + KEY, "role: no such name (did you mean roles?)"),
        ("[roles.all]\n" + KEY, "roles.all: write [[roles.all]], with two brackets"),
        ('[roles."a.b"]\n' + KEY, 'roles.a.b: write [[roles."a.b"]], with two brackets'),
        ("[[roles]]\n" + KEY, "roles: write [[roles.NAME]], with the name of a role"),
        (ROLE + KEY.replace("[[keys]]", "[keys]"), "keys (shop): write [[keys]], with two"),
        (ISSUER.replace("[[jwt]]", "[jwt]"), "jwt: write [[jwt]], with two brackets"),
        ('[certificates]\nname = "c"\n', "certificates (c): write [[certificates]], with two"),
        ("keys = 1", "keys: must be a list, as in keys = [ … ]"),
        (ROLE.replace('["*"]', '"*"') + KEY, "roles.all[0].queues: must be a list, as in queues ="),
        ("colour = 1\n" + ROLE + KEY, "colour: no such name"),
        (KEY, "keys[0] (shop).roles[0]: there is no role all"),
        (ROLE + KEY + KEY, "keys[1].name: shop is that of keys[0], too"),
        (ROLE + KEY + KEY.replace("shop", "mail"), "keys: a hash is there twice"),
        (ROLE + KEY.replace(HASH, "sha256:12"), "keys[0] (shop).hashes[0].hash: must be sha256:"),
        (ROLE + KEY.replace(HASH, HASH.upper()), "hashes[0].hash: must be sha256:"),
        (ROLE + KEY.replace("shop", "a b"), "keys[0].name: must be 1 to 128 of"),
        (
            ROLE + KEY.replace(f'"{HASH}"', f'"{HASH}", expires = 2027-01-01T00:00:00'),
            "keys[0] (shop).hashes[0].expires: Input should have timezone info",
        ),
        (
            ROLE + KEY.replace("}]", f'}}, {{ hash = "{HASH}" }}, {{ hash = "{HASH}" }}]'),
            "keys[0] (shop).hashes: List should have at most 2 items",
        ),
        (
            ROLE.replace("push", "fly") + KEY,
            (
                "roles.all[0].verbs[0]: must be one of push, work, read, read_payload, manage, "
                'admin (given: "fly")'
            ),
        ),
        (ROLE.replace("push", "reed") + KEY, '(given: "reed") (did you mean read?)'),
        (ROLE.replace('"push"', "7") + KEY, "manage, admin (given: 7)"),
        (ROLE.replace("push", "a" * 500) + KEY, f'(given: "{"a" * 59}…)'),
        (ROLE.replace('"*"', '"mail/*"') + KEY, "roles.all[0].queues[0]: must be the name"),
        (ISSUER.replace("RS256", "HS256"), "jwt[0].algorithms[0]: must be one of RS256, RS384"),
        (ISSUER.replace("RS256", "none"), "jwt[0].algorithms[0]: must be one of RS256, RS384"),
        (ISSUER.replace("https://id.example/keys", "http://id.example"), "must be an https URL"),
        (ISSUER.replace("jwks_url", "# "), "jwt[0]: needs one of jwks_file and jwks_url"),
        (ISSUER + 'name = "key"\n', "may not be called key or certificate"),
        (ISSUER + ISSUER, "jwt[1].issuer: https://id.example is that of jwt[0], too"),
        (
            ISSUER.replace("jwks_url", "jwks_file").replace("https:", "\\u0000"),
            "jwt[0].jwks_file: must be the path of a file",
        ),
        ("a = " + "[" * 20_000, "is not TOML: it is nested too deeply"),
        ("a = " + "9" * 6_000, "is not TOML: a number has too many digits"),
        (ISSUER + f"leeway_seconds = 0x{'f' * 6_000}\n", "jwt[0].leeway_seconds: "),
        (ISSUER + "leeway_seconds = 3600\n", "jwt[0].leeway_seconds: Input should be less"),
    ],
)
def test_mistakes_have_their_places(tmp_path: Path, text: str, said: str) -> None:
    assert said in mistakes(tmp_path, text)


def test_all_mistakes_are_named(tmp_path: Path) -> None:
    text = KEY + KEY.replace("shop", "mail").replace("all", "none")
    lines = mistakes(tmp_path, text).splitlines()
    assert len(lines) == 3


def test_of_many_mistakes_the_first_are_named(tmp_path: Path) -> None:
    """Each had a line, and all were one line of the log: with 5,000 of them it had 357 KB."""
    roles = "".join(f'"r{number}", ' for number in range(50))
    entries = "".join(f'[[certificates]]\nname = "c{at}"\nroles = [{roles}]\n' for at in range(100))
    lines = mistakes(tmp_path, entries).splitlines()
    assert len(lines) == MISTAKES_MAX + 1
    assert lines[0] == "certificates[0] (c0).roles[0]: there is no role r0"
    assert lines[-1] == "4,990 more mistakes"
    lines = mistakes(tmp_path, "[[keys]]\n" * 5_000).splitlines()
    assert lines[-1] == "14,990 more mistakes"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (ROLE.replace('"push"', '"fly", ' * 10_000), "roles.all[0].verbs"),
        (ISSUER.replace('"RS256"', '"none", ' * 10_000), "jwt[0].algorithms"),
        ("[roles]\nall = [" + "{}, " * 20_000 + "]\n", "roles.all"),
    ],
)
def test_a_list_that_is_too_long_is_one_mistake(tmp_path: Path, text: str, place: str) -> None:
    """All of 330,000 wrong verbs were looked at, and no thread went on for a second."""
    (line,) = mistakes(tmp_path, text).splitlines()
    assert line.startswith(f"{place}: List should have at most ")


@pytest.mark.parametrize("text", ["{} = 1", "[{}]\n[{}]"])
def test_a_mistake_is_short(tmp_path: Path, text: str) -> None:
    """One that names a key of two megabytes was a line of as many."""
    said = mistakes(tmp_path, text.replace("{}", "a" * 2_000_000))
    assert len(said) <= MISTAKE_CHARACTERS_MAX + 1
    assert "a" * 50 in said


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WrongAccessFile, match="no such file"):
        read_access_file(tmp_path / "none.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (5 << 20))
    with pytest.raises(WrongAccessFile, match="more than 4 MiB"):
        read_access_file(tmp_path / "large.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(WrongAccessFile, match="is not TOML"):
        read_access_file(tmp_path / "bytes.toml")


def test_keys_are_random_bits(tmp_path: Path) -> None:
    key = key_of(bytes(range(32)))
    assert API_KEY.fullmatch(key)
    assert hash_of(key) != hash_of(key_of(bytes(32)))
    with pytest.raises(ValueError, match="32 bytes"):
        key_of(b"short")
