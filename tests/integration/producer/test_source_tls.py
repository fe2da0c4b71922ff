"""TLS to the source: no password is sent to an unverified server or through a proxy that removes TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pymysql.constants import ER

from connector.config.source import Source
from connector.errors import ConfigError, PreflightError, SourceUnavailable
from connector.mysql.server.connection import connect, query_one
from connector.sandbox.mysql import MySqlServer
from tests.support.certificates import Certificates, write_certificates
from tests.support.stripping import stripping

UNKNOWN_AUTHORITY = {18, 19, 20}  # OpenSSL's X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT and the two that follow
HOSTNAME_MISMATCH = 62  # X509_V_ERR_HOSTNAME_MISMATCH

pytestmark = pytest.mark.servers
PASSWORD = "planted-for-tls"


@dataclass(frozen=True)
class Place:
    """A server with a certificate for 127.0.0.1, of an authority that the machine does not know."""

    server: MySqlServer
    certificates: Certificates

    def source(self, user: str = "thl", **settings: Any) -> Source:
        """The section, with TLS."""
        where = {"host": "127.0.0.1", "port": self.server.port, "user": user, "password": PASSWORD}
        return Source(**({**where, "tls": True} | settings))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with write_certificates() as certificates:
        folder = tmp_path_factory.mktemp("tls")
        with MySqlServer(folder, settings=certificates.settings, die_with_parent=True) as server:
            server.create_user("thl", PASSWORD)
            server.create_user("certified", PASSWORD)
            server.run_sql("ALTER USER certified REQUIRE X509")
            yield Place(server, certificates)


def cipher(source: Source) -> str:
    with closing(connect(source)) as session:
        row = query_one(session, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert row is not None
        return str(row["Value"])


def test_unknown_authority_is_refused_unless_configured(place: Place) -> None:
    with pytest.raises(PreflightError) as unknown:
        connect(place.source())
    assert unknown.value.where["verify_code"] in UNKNOWN_AUTHORITY
    assert "source.tls_ca" in unknown.value.hint

    assert cipher(place.source(tls_ca=place.certificates.authority))
    assert cipher(place.source(tls_verify="none"))


def test_certificate_for_another_name_is_refused_unless_only_the_authority_is_checked(place: Place) -> None:
    elsewhere = {"host": "localhost", "tls_ca": place.certificates.authority}
    with pytest.raises(PreflightError) as misnamed:
        connect(place.source(**elsewhere))
    assert misnamed.value.where["verify_code"] == HOSTNAME_MISMATCH
    assert "source.tls_verify: ca" in misnamed.value.hint

    assert cipher(place.source(**elsewhere, tls_verify="ca"))


def test_user_with_require_x509_needs_a_client_certificate(place: Place) -> None:
    with pytest.raises(PreflightError) as refused:
        connect(place.source("certified", tls_ca=place.certificates.authority))
    assert (refused.value.where["code"], refused.value.where["user"]) == (ER.ACCESS_DENIED_ERROR, "certified")

    assert cipher(place.source("certified", tls_ca=place.certificates.authority, tls_cert=place.certificates.client))


@pytest.mark.parametrize("verify", ["identity", "none"])
def test_stripped_tls_is_refused_before_anything_is_sent(place: Place, verify: str) -> None:
    with stripping(("127.0.0.1", place.server.port)) as between:
        with pytest.raises(PreflightError) as stripped:
            connect(place.source(port=between.port, tls_verify=verify))
        assert stripped.value.where["option"] == "source.tls"
        assert bytes(between.heard) == b""

        # The connection works: without TLS a login is sent, which the proxy does not answer.
        with pytest.raises(SourceUnavailable):
            connect(place.source(port=between.port, tls=False), silence=0.5)
        assert b"thl" in between.heard


def test_unusable_tls_file_is_refused_by_its_option(place: Place, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for settings in ({"tls_ca": tmp_path / "none.pem"}, {"tls_ca": tmp_path / "no.pem"}):
        with pytest.raises(ConfigError) as unusable:
            connect(place.source(**settings))
        assert unusable.value.where == {"option": "source.tls_ca", "file": settings["tls_ca"]}
    with pytest.raises(ConfigError) as unusable:
        connect(place.source(tls_ca=place.certificates.authority, tls_cert=tmp_path / "no.pem"))
    assert unusable.value.where == {
        "option": "source.tls_cert and source.tls_key",
        "file": tmp_path / "no.pem",
    }
