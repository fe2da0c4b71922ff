"""The certificate authorities that this machine trusts, for a Java that came with only its own."""

from __future__ import annotations

import re
import ssl
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.utils import CryptographyDeprecationWarning

# Where distributions keep them in one file, when Python's OpenSSL was built to look elsewhere.
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def replace_trust_store(store: Path) -> None:
    """Make `store`, a Java runtime's `cacerts`, hold what the machine trusts; leave it when that is not found."""
    named = ssl.get_default_verify_paths().cafile  # SSL_CERT_FILE, or OpenSSL's own
    bundle = next((Path(name) for name in (named, *_BUNDLES) if name and Path(name).is_file()), None)
    if bundle is None:
        return
    entries = [
        PKCS12Certificate(certificate, b"%d" % number)
        for number, block in enumerate(_CERTIFICATE.findall(bundle.read_bytes()))
        if (certificate := _readable(block))
    ]
    # Java opens its default store without a password, and so can read only what is not encrypted.
    store.write_bytes(serialize_java_truststore(entries, NoEncryption()))


def _readable(block: bytes) -> x509.Certificate | None:
    """One certificate; None when it is too odd for the library, as old authorities' can be: it is not trusted then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            return x509.load_pem_x509_certificate(block)
        except ValueError:
            return None
