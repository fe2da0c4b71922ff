"""A certificate authority and a server certificate for one run: MySQL's own name no host."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from connector.sandbox.settings import HOST

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM.

    Args:
        authority: file by which a client verifies the server.
        certificate, key: the server's.
        client: a client's, both in one file.
        expired: another certificate of the server's, no longer valid.
    """

    authority: Path
    certificate: Path
    key: Path
    client: Path
    expired: Path

    @property
    def settings(self) -> dict[str, str]:
        """MySQL's settings for these certificates."""
        return {"ssl_ca": str(self.authority), "ssl_cert": str(self.certificate), "ssl_key": str(self.key)}


@contextmanager
def write_certificates() -> Iterator[Certificates]:
    """Writes certificates for loopback, valid for a day, and one that was valid until now."""
    authority_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority_name = _name("benchmark's authority")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    server, expired = (
        _builder(_name(HOST), authority_name, server_key.public_key(), lasts)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
        for lasts in (_DAY, timedelta())
    )
    client = (
        _builder(_name("client"), authority_name, client_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    with tempfile.TemporaryDirectory(prefix="thl-bench-tls-") as name:
        found = Certificates(
            *(Path(name, file) for file in ("ca.pem", "server.pem", "server.key", "client.pem", "expired.pem"))
        )
        found.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        found.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
        found.expired.write_bytes(expired.public_bytes(serialization.Encoding.PEM))
        found.key.write_bytes(_private(server_key))
        found.client.write_bytes(client.public_bytes(serialization.Encoding.PEM) + _private(client_key))
        yield found


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lasts: timedelta = _DAY
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + lasts)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
