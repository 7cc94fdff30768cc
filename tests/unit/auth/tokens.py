"""An issuer of tokens, for tests: its keys, its tokens, and the lines of the file for it."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, AUDIENCE = "https://id.example", "jobs"


class Issuer:
    """Signs tokens with keys that it lists."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.rotate("rsa-1")

    def rotate(self, key_id: str, kind: str = "RSA") -> None:
        """Adds a key."""
        self.keys[key_id] = (
            rsa.generate_private_key(65537, 2048)
            if kind == "RSA"
            else ec.generate_private_key(ec.SECP256R1())
        )

    def jwks(self) -> bytes:
        """The set of its keys."""
        return json.dumps({"keys": [self._listed(key_id) for key_id in self.keys]}).encode()

    def _listed(self, key_id: str) -> dict[str, Any]:
        public = self.keys[key_id].public_key()
        is_rsa = isinstance(public, rsa.RSAPublicKey)
        algorithm: Any = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
        shown = algorithm.to_jwk(public, as_dict=True)
        return {**shown, "kid": key_id, "use": "sig"}

    def public_pem(self, key_id: str = "rsa-1") -> bytes:
        """A public key as text."""
        found: bytes = (
            self.keys[key_id]
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return found

    def token(
        self,
        key_id: str = "rsa-1",
        algorithm: str = "RS256",
        *,
        seconds: float = 60,
        key: Any = None,
        **claims: Any,
    ) -> str:
        """A token; a claim that is None is left out."""
        given = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "alice",
            "exp": time.time() + seconds,
            "roles": ["all"],
            **claims,
        }
        given = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(
            given, key or self.keys[key_id], algorithm=algorithm, headers={"kid": key_id}
        )


def issuer_lines(source: str, algorithms: str = '"RS256", "ES256"', **more: object) -> str:
    """The lines of the file."""
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    return (
        f'[[jwt]]\nissuer = "{ISSUER}"\naudience = "{AUDIENCE}"\nalgorithms = [{algorithms}]\n'
        f"{source}\nleeway_seconds = 0\n{lines}"
    )
