"""Sealed frames: the vectors that all clients share, and what is this client's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobline._sealed_frames import key_id_of
from jobline.codec import Codec, KeyMap
from jobline.errors import CodecError, InvalidArgument, KeyErased, SealError

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "conformance" / "codec.json").read_text("utf-8")
)
KEYS = {key_id: bytes.fromhex(key) for key_id, key in VECTORS["keys"].items()}
CODEC = Codec(KeyMap(KEYS, current="tenant-7"), tag_key=bytes.fromhex(VECTORS["tag_key"]))


def named(vectors: list[dict[str, str]]) -> Any:
    return pytest.mark.parametrize("vector", vectors, ids=[one["name"] for one in vectors])


@named(VECTORS["read"])
def test_frames_are_read(vector: dict[str, str]) -> None:
    inside = CODEC.open(bytes.fromhex(vector["frame"]))
    assert inside is not None
    assert inside.data == bytes.fromhex(vector["plain"])
    assert (inside.content_type, inside.key_id) == (vector["type"], vector["key"])


@named(VECTORS["unframed"])
def test_other_bytes_are_as_they_are(vector: dict[str, str]) -> None:
    data = bytes.fromhex(vector["bytes"])
    assert CODEC.open(data) is None
    assert CODEC.opened(data) == data


@named(VECTORS["refuse"])
def test_broken_frames_are_refused(vector: dict[str, str]) -> None:
    """In words that name what is wrong, and have nothing of the payload."""
    kind = KeyErased if vector["error"] == "key_erased" else SealError
    with pytest.raises(kind) as caught:
        CODEC.open(bytes.fromhex(vector["frame"]))
    assert type(caught.value) is kind
    assert not caught.value.retryable
    assert "a@b.c" not in str(caught.value)


@named(VECTORS["tags"])
def test_tags(vector: dict[str, str]) -> None:
    assert CODEC.tag(vector["name"], vector["value"]) == vector["hashed"]


@pytest.mark.parametrize("data", [b"", b"x", b"\xff" * 300, bytes(range(256)) * 4])
@pytest.mark.parametrize("codec", [CODEC, Codec(), Codec(compress=False)])
def test_what_is_sealed_can_be_opened(codec: Codec, data: bytes) -> None:
    frame = codec.seal(data, "text/plain", group="g")
    inside = codec.open(frame)
    assert inside is not None
    assert (inside.data, inside.content_type) == (data, "text/plain")


def test_the_same_bytes_make_the_same_frame_and_others_another_nonce() -> None:
    """A push that is repeated with its key is known again."""
    frames = [CODEC.seal(data)[7:] for data in (b"one", b"one", b"two")]
    assert frames[0] == frames[1]
    assert frames[0][9:20] != frames[2][9:20]


def test_small_or_random_bytes_are_not_deflated() -> None:
    assert Codec().seal(b"a" * 255)[4] == 0
    assert Codec().seal(b"a" * 256)[4] == 1
    assert Codec().seal(bytes(range(256)))[4] == 0


def test_inflating_has_a_bound() -> None:
    """A frame of some bytes may hold gigabytes."""
    frame = Codec().seal(b"a" * 10_000)
    assert Codec(inflated_bytes_max=10_000).opened(frame) == b"a" * 10_000
    with pytest.raises(SealError, match="more than 9999 bytes"):
        Codec(inflated_bytes_max=9_999).open(frame)


def test_keys_are_chosen_by_group_and_a_missing_one_is_no_silence() -> None:
    codec = Codec(KeyMap(KEYS, current=lambda group: group or "tenant-7"))
    assert key_id_of(codec.seal(b"x")) == "tenant-7"
    with pytest.raises(KeyErased, match="tenant-9"):
        codec.seal(b"x", group="tenant-9")
    with pytest.raises(InvalidArgument, match="32 bytes"):
        KeyMap({"short": b"x"}, current="short")
    with pytest.raises(InvalidArgument, match="tag_key"):
        Codec(hashed_tags=["email"])


def test_only_the_tags_that_were_named_are_hashed() -> None:
    codec = Codec(hashed_tags={"email"}, tag_key=bytes.fromhex(VECTORS["tag_key"]))
    assert codec.hashed(["email:a@b.c", "eu", "name:x", "email"]) == (
        VECTORS["tags"][0]["hashed"],
        "eu",
        "name:x",
        "email",
    )
    with pytest.raises(CodecError):
        Codec().open(b"\x00JL\x01")
