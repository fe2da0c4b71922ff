"""The TLS context of source and target: one meaning of `verify`, and files that cannot be used are named by each."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.config.source import Source
from connector.config.target_url import mysql_address, tls_attempts
from connector.errors import ConfigError
from connector.mysql.server.connection import _tls
from connector.mysql_tls import TlsVerify, tls_context


@pytest.mark.parametrize(
    ("verify", "mode"), [("identity", "verify_identity"), ("ca", "verify_ca"), ("none", "required")]
)
def test_source_and_target_verify_the_same(verify: TlsVerify, mode: str) -> None:
    made = tls_context(verify, None, None, None)
    (target,) = tls_attempts(mysql_address(f"mysql://u:p@db.example?ssl_mode={mode}"))
    source = _tls(Source(tls=True, tls_verify=verify))
    for one in (source, target):
        assert one is not None
        assert (one.check_hostname, one.verify_mode) == (made.check_hostname, made.verify_mode)
        assert not one.verify_flags & ssl.VERIFY_X509_STRICT
    assert (made.check_hostname, made.verify_mode is ssl.CERT_REQUIRED) == (verify == "identity", verify != "none")


def of_target(**files: Path) -> None:
    given = "&".join(f"ssl_{name}={path}" for name, path in files.items())
    tls_attempts(mysql_address(f"mysql://u:p@db.example?ssl_mode=verify_ca&{given}"))


def of_source(**files: Path) -> None:
    _tls(Source.model_validate({"tls": True} | {f"tls_{name}": path for name, path in files.items()}))


@pytest.mark.parametrize(
    ("opened", "name", "said"),
    [
        (of_source, "ca", "source.tls_ca"),
        (of_source, "cert", "source.tls_cert and source.tls_key"),
        (of_target, "ca", "ssl_ca of target.url"),
        (of_target, "cert", "ssl_cert and ssl_key of target.url"),
    ],
)
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_file_that_cannot_be_used_is_named(
    opened: Callable[..., None], name: str, said: str, content: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "a.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match="a file for TLS cannot be used") as error:
        opened(**{name: file})
    assert said in f"{error.value.where.get('option', '')} {error.value.hint}"
