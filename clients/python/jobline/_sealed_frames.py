"""Sealed frames: bytes that say themselves how to read them. docs/clients.md states the format.
Pure, but for the cipher, which comes with `jobline[codec]`.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from jobline._base_errors import InvalidArgument, KeyErased, SealError
from jobline._installing import how_to_install

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"\x00JL"
VERSION = 1
SEALED = "application/vnd.jobline.sealed"
"""Content type of a payload that is a frame."""

KEY_BYTES = 32
KEY_ID_BYTES_MAX = 64
TYPE_BYTES_MAX = 128
NONCE_BYTES = 12
TAG_BYTES = 16
DEFLATE_BYTES_MIN = 256
INFLATED_BYTES_MAX = 64 << 20

_DEFLATED, _ENCRYPTED = 1, 2
_NONCE_LABEL = b"jobline nonce"


@dataclass(frozen=True, slots=True)
class Opened:
    """The inside of a frame. `key_id` is "" if it was not encrypted."""

    data: bytes
    content_type: str
    key_id: str


def is_frame(data: bytes) -> bool:
    """Returns whether bytes are a frame, or the beginning of one."""
    return data.startswith(MAGIC) and len(data) > len(MAGIC)


def seal(
    data: bytes, content_type: str, key: tuple[str, bytes] | None, *, compress: bool = True
) -> bytes:
    """Returns the frame of some bytes, encrypted by `key`, as (id, 32 bytes), if there is one.

    The same bytes make the same frame, so that a push that is repeated with its `job_key` is known
    again: the nonce is a keyed hash of all that is encrypted. Raises InvalidArgument for a key or
    a content type that no frame holds.
    """
    flags = 0
    if compress and len(data) >= DEFLATE_BYTES_MIN:
        smaller = zlib.compress(data)
        if len(smaller) < len(data):
            data, flags = smaller, _DEFLATED
    kind, key_id = content_type.encode(), b""
    if key is not None:
        key_id, flags = key[0].encode(), flags | _ENCRYPTED
        _check_key(key_id, key[1])
    if len(kind) > TYPE_BYTES_MAX:
        raise InvalidArgument(f"a content type has at most {TYPE_BYTES_MAX} bytes")
    header = b"".join(
        [MAGIC, bytes([VERSION, flags, len(key_id)]), key_id, bytes([len(kind)]), kind]
    )
    if key is None:
        return header + data
    nonce = _nonce_of(key[1], header, data)
    return header + nonce + _cipher(key[1]).encrypt(nonce, data, header)


def open_frame(
    frame: bytes,
    find: Callable[[str], bytes | None],
    *,
    inflated_bytes_max: int = INFLATED_BYTES_MAX,
) -> Opened:
    """Returns the inside of a frame. Raises KeyErased if its key is not found, and SealError for
    anything else that is wrong.
    """
    flags, key_id, kind, at = _header_of(frame)
    header, data = frame[:at], frame[at:]
    if flags & _ENCRYPTED:
        key = find(key_id)
        if key is None:
            raise KeyErased(f"the key {key_id!r} of a sealed frame is erased, or not in the ring")
        _check_key(key_id.encode(), key)
        data = _decrypted(key, header, data)
    if flags & _DEFLATED:
        data = _inflated(data, inflated_bytes_max)
    return Opened(data, kind, key_id)


def key_id_of(frame: bytes) -> str:
    """Returns the id of the key of a frame, "" if it is not encrypted. Raises SealError."""
    return _header_of(frame)[1]


def _header_of(frame: bytes) -> tuple[int, str, str, int]:
    """Returns flags, key id and content type of a frame, and where its body begins."""
    if len(frame) < len(MAGIC) + 3 or not frame.startswith(MAGIC):
        raise SealError("a sealed frame is cut off")
    version, flags = frame[3], frame[4]
    if version != VERSION:
        raise SealError(f"a sealed frame has the version {version}, which this client cannot read")
    if flags & ~(_DEFLATED | _ENCRYPTED):
        raise SealError(f"a sealed frame has flags that this client does not know: {flags:#04x}")
    key_id, at = _text_at(frame, 5, KEY_ID_BYTES_MAX, "key id")
    kind, at = _text_at(frame, at, TYPE_BYTES_MAX, "content type")
    if bool(key_id) is not bool(flags & _ENCRYPTED):
        raise SealError("a sealed frame has a key id if it is encrypted, and only then")
    return flags, key_id, kind, at


def _text_at(frame: bytes, at: int, longest: int, what: str) -> tuple[str, int]:
    if at >= len(frame):
        raise SealError("a sealed frame is cut off")
    end = at + 1 + frame[at]
    if frame[at] > longest:
        raise SealError(f"the {what} of a sealed frame is longer than {longest} bytes")
    if end > len(frame):
        raise SealError("a sealed frame is cut off")
    try:
        return frame[at + 1 : end].decode(), end
    except UnicodeDecodeError:
        raise SealError(f"the {what} of a sealed frame is not UTF-8") from None


def _decrypted(key: bytes, header: bytes, body: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # an extra

    if len(body) < NONCE_BYTES + TAG_BYTES:
        raise SealError("a sealed frame is cut off")
    try:
        return _cipher(key).decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], header)
    except InvalidTag:
        raise SealError("a sealed frame was changed, or its key is another one") from None


def _inflated(data: bytes, longest: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, longest + 1)
    except zlib.error as error:
        raise SealError(f"a sealed frame cannot be inflated: {error}") from None
    if len(found) > longest:
        raise SealError(f"a sealed frame inflates to more than {longest} bytes")
    if not inflater.eof or inflater.unused_data:
        raise SealError("the deflated bytes of a sealed frame do not end where it does")
    return found


def _nonce_of(key: bytes, header: bytes, data: bytes) -> bytes:
    own = hmac.digest(key, _NONCE_LABEL, hashlib.sha256)
    return hmac.digest(own, header + data, hashlib.sha256)[:NONCE_BYTES]


def _check_key(key_id: bytes, key: bytes) -> None:
    if not 0 < len(key_id) <= KEY_ID_BYTES_MAX:
        raise InvalidArgument(f"the id of a key has 1 … {KEY_ID_BYTES_MAX} bytes of UTF-8")
    if len(key) != KEY_BYTES:
        raise InvalidArgument(f"a key has {KEY_BYTES} bytes")


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise InvalidArgument(
            "a codec with keys needs the extra: install it " + how_to_install("jobline", "codec")
        ) from error
    return aead.AESGCM(key)


def refuse_sealed(data: bytes) -> NoReturn:
    """Raises KeyErased for a frame that could not be opened, SealError for one that has no key."""
    key_id = key_id_of(data)
    if key_id:
        raise KeyErased(
            f"it is sealed with the key {key_id!r}, which is erased, or not in the ring here"
        )
    raise SealError("it is sealed: open it with Client(codec=…)")
