"""API keys: `jl_` and 43 characters of base64url, which are 256 random bits.

A server keeps the SHA-256 of a key alone. A slow hash would make guesses dearer, and there is
nothing to guess of 256 random bits.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import sha256

PREFIX = "jl_"
HASH_PREFIX = "sha256:"
RANDOM_BYTES = 32
API_KEY = re.compile(r"jl_[A-Za-z0-9_-]{43}")
HASH = re.compile(r"sha256:[0-9a-f]{64}")


def key_of(random: bytes) -> str:
    """Returns the API key of 32 random bytes."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a key is made of {RANDOM_BYTES} bytes, not {len(random)}")
    return PREFIX + urlsafe_b64encode(random).decode().rstrip("=")


def hash_of(key: str) -> str:
    """Returns the hash of an API key, as it stands in the file."""
    return HASH_PREFIX + sha256(key.encode()).hexdigest()
