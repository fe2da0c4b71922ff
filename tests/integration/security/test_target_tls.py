"""TLS to a MySQL or MariaDB as target: who is verified, and which certificates are refused."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from connector.config.target_url import mysql_address
from connector.errors import ConfigError, PreflightError, SandboxError, TargetUnavailable
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.targets.mysql.server.connection import ServerSession
from connector.verify.mysql import MySqlReader
from tests.support.certificates import Certificates, write_certificates
from tests.support.long import long

pytestmark = pytest.mark.servers
PASSWORD = "planted-for-tls"


@dataclass(frozen=True)
class Place:
    """A server with a certificate for 127.0.0.1, of an authority that the machine does not know."""

    server: MySqlServer | MariaDbServer
    certificates: Certificates

    def url(self, user: str = "plain", host: str = "127.0.0.1", **parameters: str | Path) -> str:
        given = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"mysql://{user}:{PASSWORD}@{host}:{self.server.port}/?{given}"

    def reload(self) -> None:
        """Have the server read its certificate again."""
        is_mysql = isinstance(self.server, MySqlServer)
        self.server.run_sql("ALTER INSTANCE RELOAD TLS" if is_mysql else "FLUSH SSL")


@pytest.fixture(scope="module", params=["mysql", *long("mariadb")])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made, more = (MySqlServer, {}) if request.param == "mysql" else (MariaDbServer, {"ssl": "ON"})
    with write_certificates() as certificates:
        folder = tmp_path_factory.mktemp("tls")
        with made(folder, settings={**certificates.settings, **more}, die_with_parent=True) as server:
            for user, needs in (("plain", "SSL"), ("certified", "X509")):
                server.run_sql(f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE {needs}")
            yield Place(server, certificates)


def cipher(url: str) -> str:
    with closing(ServerSession(url, "test")) as session:
        ((_, value),) = session.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return str(value)


def refused(url: str) -> PreflightError:
    with pytest.raises(PreflightError) as raised:
        ServerSession(url, "test")
    assert PASSWORD not in str(raised.value)
    return raised.value


def test_authority_and_name_of_the_server_are_verified(place: Place) -> None:
    trusted = place.certificates.authority
    assert "cannot be trusted" in str(refused(place.url(ssl_mode="verify_ca")))
    assert "cannot be trusted" in str(refused(place.url(host="localhost", ssl_mode="verify_identity", ssl_ca=trusted)))
    assert cipher(place.url(host="localhost", ssl_mode="verify_ca", ssl_ca=trusted))
    assert cipher(place.url(ssl_mode="verify_identity", ssl_ca=trusted))


def test_expired_certificate_is_refused(place: Place) -> None:
    verified = place.url(ssl_mode="verify_ca", ssl_ca=place.certificates.authority)
    valid = place.certificates.certificate.read_bytes()
    shutil.copy(place.certificates.expired, place.certificates.certificate)
    try:
        if isinstance(place.server, MySqlServer):  # it does not even begin to use one
            with pytest.raises(SandboxError, match="Invalid certificates"):
                place.reload()
        else:
            place.reload()
            assert "expired" in str(refused(verified))
    finally:
        place.certificates.certificate.write_bytes(valid)
        place.reload()
    assert cipher(verified)


def test_user_with_require_x509_needs_a_client_certificate(place: Place) -> None:
    trusted = {"ssl_mode": "verify_identity", "ssl_ca": place.certificates.authority}
    assert "Access denied" in str(refused(place.url("certified", **trusted)))
    url = place.url("certified", **trusted, ssl_cert=place.certificates.client)
    assert cipher(url)
    with closing(MySqlReader(url)) as reader:
        assert not reader.applied("none")


def test_client_certificate_of_another_authority_is_refused(place: Place) -> None:
    trusted = {"ssl_mode": "verify_identity", "ssl_ca": place.certificates.authority}
    with (
        write_certificates() as others,
        pytest.raises((PreflightError, TargetUnavailable)) as raised,
    ):
        ServerSession(place.url("certified", **trusted, ssl_cert=others.client), "test")
    # The server may have closed the connection before the client has read why: then it counts as gone.
    words = ("refuses the client's certificate", "EOF", "reset", "Broken pipe")
    assert any(text in str(raised.value) for text in words)


@pytest.mark.parametrize("parameter", ["ssl_ca", "ssl_cert"])
def test_unusable_file_is_refused(place: Place, parameter: str, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for file in ("none.pem", "no.pem"):
        with pytest.raises(ConfigError) as unusable:
            ServerSession(place.url(ssl_mode="required", **{parameter: tmp_path / file}), "test")
        assert parameter in unusable.value.hint


def test_authority_that_mysql_generates_is_accepted_as_on_python_3_13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ssl.create_default_context

    def strict(cafile: str | None = None) -> ssl.SSLContext:
        context = made(cafile=cafile)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    with MySqlServer(tmp_path / "own", die_with_parent=True) as server:
        server.create_user("thl", PASSWORD)
        authority = next((tmp_path / "own").rglob("ca.pem"))
        url = f"mysql://thl:{PASSWORD}@127.0.0.1:{server.port}/?ssl_mode=verify_ca&ssl_ca={authority}"
        assert mysql_address(url).tls == "verify_ca"
        assert cipher(url)
