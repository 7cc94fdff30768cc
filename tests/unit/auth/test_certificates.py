"""The names of certificates: one rule for all transports."""

from __future__ import annotations

import datetime as dt
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from jobline_server.auth.certificates import names_of

KEY = ec.generate_private_key(ec.SECP256R1())


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def certificate(common: str, sans: list[x509.GeneralName] | None = None) -> bytes:
    made = (
        x509.CertificateBuilder()
        .subject_name(name(common))
        .issuer_name(name("authority"))
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2027, 1, 1, tzinfo=dt.UTC))
    )
    if sans is not None:
        made = made.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    return made.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_the_sans_are_the_names() -> None:
    sans = [
        x509.DNSName("a.example"),
        x509.UniformResourceIdentifier("spiffe://example/worker"),
        x509.RFC822Name("a@example.org"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    names = ("a.example", "spiffe://example/worker", "a@example.org")
    assert names_of(certificate("other", sans)) == names


def test_the_common_name_is_that_of_one_without_sans() -> None:
    assert names_of(certificate("worker")) == ("worker",)
    assert names_of(certificate("worker", [])) == ("worker",)


@pytest.mark.parametrize(
    "sans",
    [
        [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))],
        [x509.DirectoryName(name("someone"))],
        [x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4"))],
        [x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")],
    ],
)
def test_beside_sans_of_any_kind_it_is_none(sans: list[x509.GeneralName]) -> None:
    """With an authority that checks SANs alone, its owner could choose who to be."""
    assert names_of(certificate("worker", sans)) == ()


@pytest.mark.parametrize("common", ["a\nb", "a\0b"])
def test_a_name_that_cannot_be_shown_is_none(common: str) -> None:
    assert names_of(certificate(common)) == ()


def test_what_is_no_certificate_has_no_name() -> None:
    whole = certificate("worker")
    for text in (b"", b"worker", whole[:100], whole.replace(b"MI", b"MJ", 1)):
        assert names_of(text) == ()
