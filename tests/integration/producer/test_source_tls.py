"""TLS to the source: who is not verified gets no password, and who takes TLS away gets none either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connector.config.model import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.mysql.server.connection import connect, query_one
from connector.sandbox.mysql import MySqlServer
from tests.support.certificates import Certificates, write_certificates
from tests.support.stripping import stripping

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


def test_a_server_of_an_unknown_authority_is_refused_unless_it_is_said_otherwise(place: Place) -> None:
    with pytest.raises(PreflightError, match=r"source\.tls_ca"):
        connect(place.source())

    assert cipher(place.source(tls_ca=place.certificates.authority))
    assert cipher(place.source(tls_verify="none"))


def test_a_certificate_for_another_name_is_refused_unless_the_authority_is_enough(place: Place) -> None:
    elsewhere = {"host": "localhost", "tls_ca": place.certificates.authority}
    with pytest.raises(PreflightError, match="tls_verify: ca"):
        connect(place.source(**elsewhere))

    assert cipher(place.source(**elsewhere, tls_verify="ca"))


def test_a_user_with_require_x509_needs_our_certificate(place: Place) -> None:
    with pytest.raises(PreflightError, match="refuses the user"):
        connect(place.source("certified", tls_ca=place.certificates.authority))

    assert cipher(place.source("certified", tls_ca=place.certificates.authority, tls_cert=place.certificates.client))


@pytest.mark.parametrize("verify", ["identity", "none"])
def test_where_tls_was_taken_away_nothing_is_said(place: Place, verify: str) -> None:
    with stripping(("127.0.0.1", place.server.port)) as between:
        with pytest.raises(PreflightError, match=r"source\.tls\b"):
            connect(place.source(port=between.port, tls_verify=verify))
        assert bytes(between.heard) == b""

        # The wire works: without TLS a login is tried, which nobody answers.
        with pytest.raises(SourceUnavailable):
            connect(place.source(port=between.port, tls=False), silence=0.5)
        assert b"thl" in between.heard


def test_files_that_cannot_be_used_are_named(place: Place, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for settings in ({"tls_ca": tmp_path / "none.pem"}, {"tls_ca": tmp_path / "no.pem"}):
        with pytest.raises(Exception, match=r"source\.tls_ca"):
            connect(place.source(**settings))
    with pytest.raises(Exception, match=r"source\.tls_cert and source\.tls_key"):
        connect(place.source(tls_ca=place.certificates.authority, tls_cert=tmp_path / "no.pem"))
