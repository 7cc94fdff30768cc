"""The public keys of an issuer (a JSON Web Key Set), by their ids.

Only keys for signatures that are made with a private key are taken: RSA, elliptic curves and
Edwards curves. Others of the set are left out, so that none is ever used to check what anybody
could have signed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from jwt import PyJWK
from jwt.exceptions import PyJWTError

KEY_SET_BYTES_MAX = 256 << 10
KEYS_MAX = 100
RSA_BITS_MIN = 2_048
# The algorithms that a key is for, by its type and its curve.
RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
CURVES = {
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
    ("OKP", "Ed448"): frozenset({"EdDSA"}),
}


class WrongKeySet(Exception):
    """The text is no set of keys, or has none that can be used."""


class PublicKey(NamedTuple):
    """A key, its id ("" without), and the algorithms that it is for."""

    id: str
    key: Any
    algorithms: frozenset[str]


def read_keys(text: bytes) -> list[PublicKey]:
    """Returns the keys of a set. Raises `WrongKeySet`."""
    if len(text) > KEY_SET_BYTES_MAX:
        raise WrongKeySet(f"has more than {KEY_SET_BYTES_MAX >> 10} KiB")
    try:
        listed = json.loads(text)["keys"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise WrongKeySet("is no JSON Web Key Set") from None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise WrongKeySet(f"`keys` must be a list of up to {KEYS_MAX} keys")
    keys = [key for one in listed if isinstance(one, dict) for key in _usable(one)]
    if not keys:
        raise WrongKeySet("has no public key for signatures (RSA of 2,048 bits, EC or Ed25519)")
    return keys


def _usable(listed: dict[str, Any]) -> Iterator[PublicKey]:
    kind, key_id = listed.get("kty"), listed.get("kid", "")
    if kind not in {"RSA", "EC", "OKP"} or not isinstance(key_id, str):
        return
    if listed.get("use", "sig") != "sig":
        return
    algorithms = RSA if kind == "RSA" else CURVES.get((kind, str(listed.get("crv"))), frozenset())
    named = listed.get("alg")
    algorithms = algorithms if named is None else algorithms.intersection({str(named)})
    if not algorithms:
        return
    # Only what is public: a set with a private key in it is none the less a set.
    public = {name: value for name, value in listed.items() if name not in _PRIVATE}
    try:
        key = PyJWK(public, algorithm=min(algorithms)).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return
    if kind != "RSA" or key.key_size >= RSA_BITS_MIN:
        yield PublicKey(key_id, key, algorithms)


_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
