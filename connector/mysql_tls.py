"""The TLS context for a MySQL or MariaDB, a source or a target."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Literal

TlsVerify = Literal["identity", "ca", "none"]
File = str | Path


class TlsFileError(Exception):
    """Raised when a file cannot be used.

    Args:
        error: the reason.
        authority: true: it is that of the authorities; else that of the client's certificate, or of its key.
    """

    def __init__(self, error: OSError, *, authority: bool) -> None:
        super().__init__(error.strerror or str(error))
        self.authority = authority


def tls_context(
    verify: TlsVerify, authority: File | None, certificate: File | None, key: File | None
) -> ssl.SSLContext:
    """Make the context of a client.

    Args:
        verify: the server's certificate and its host name; the certificate alone; or nothing.
        authority: certificates that verify the server's; None: the system's.
        certificate: the client's; None: it has none.
        key: its private key; None: it is in the same file.

    Raises:
        TlsFileError: a file is missing or invalid.
    """
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:  # ssl.SSLError is one
        raise TlsFileError(error, authority=True) from error
    # MySQL's generated CA lacks extensions that Python 3.13 and newer require.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = verify == "identity"
    if verify == "none":
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate, key, password="")
        except OSError as error:
            raise TlsFileError(error, authority=False) from error
    return context
