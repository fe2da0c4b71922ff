"""TLS to a MySQL target: what it needs of the server's certificate, and a server without it.

The applier's sessions and those of `thl verify` get the same answer to `ssl_mode`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest

from connector.config.target_url import TlsMode
from connector.errors import ConnectorError
from connector.targets.mysql.rows.load_data import FEWEST
from connector.targets.mysql.server.connection import Loaded, ServerSession
from connector.verify.mysql import MySqlReader
from tests.contract.mysql_place import MySqlPlace, taking_files
from tests.contract.target_suite import CREATE_USERS, USERS, Applier
from tests.support.net import Row, net
from tests.support.servers.environment import SqlServer

RELOAD = "ALTER INSTANCE RELOAD TLS"


@pytest.fixture
def without_tls(mysql_server: SqlServer) -> Iterator[str]:
    place = MySqlPlace(mysql_server)
    ((before,),) = place.query("SELECT @@tls_version")
    place.run("SET GLOBAL tls_version = ''")
    place.run(f"{RELOAD} NO ROLLBACK ON ERROR")  # accepts that nothing is left to offer
    yield place.url
    place.run(f"SET GLOBAL tls_version = '{before}'")
    place.run(RELOAD)
    place.close()


def apply(url: str) -> None:
    ServerSession(url, "thl apply").close()


def verify(url: str) -> None:
    assert MySqlReader(url).applied("shop") is False


@pytest.fixture
def with_tls(mysql_server: SqlServer) -> Iterator[MySqlPlace]:
    """A server with the certificate that it has made itself, which takes LOAD DATA LOCAL."""
    with taking_files(mysql_server) as place:
        yield place


def authority(place: MySqlPlace) -> str:
    ((folder, name),) = place.query("SELECT @@datadir, @@ssl_ca")
    return quote(str(Path(str(folder), str(name))))


def test_rows_statements_and_files_go_through_tls(with_tls: MySqlPlace) -> None:
    """Rows and files are loaded; LOAD DATA is what the applier also sends the file of a statement by."""
    root, with_tls.url = with_tls.url, f"{with_tls.url}/?ssl_mode=verify_ca&ssl_ca={authority(with_tls)}"
    applier = Applier(with_tls.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    rows: list[Row] = [(number, "é", f"{number}@example.org") for number in range(2 * FEWEST)]
    applier.rows(net(USERS, inserts=rows))
    assert with_tls.read(USERS) == rows
    session = ServerSession(with_tls.url, "thl apply", files=True)
    try:
        assert session.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1]
        assert session.load(b"LOAD DATA LOCAL INFILE 'thl' INTO TABLE shop.users", BytesIO(b"-1\ta\tb\n")) == Loaded(1)
    finally:
        session.close()
    with_tls.url = root


@pytest.mark.parametrize("connects", [apply, verify])
@pytest.mark.parametrize(
    ("mode", "trusts"), [("verify_ca", False), ("verify_identity", False), ("verify_identity", True)]
)
def test_certificate_that_is_not_to_be_trusted_is_refused(
    with_tls: MySqlPlace, connects: Callable[[str], None], mode: TlsMode, *, trusts: bool
) -> None:
    """Signed by an authority that is not the system's; or by the one that is named, for another host."""
    given = f"&ssl_ca={authority(with_tls)}" if trusts else ""
    with pytest.raises(ConnectorError, match="certificate verify failed"):
        connects(f"{with_tls.url}/?ssl_mode={mode}{given}")


@pytest.mark.parametrize("connects", [apply, verify])
def test_preferred_tls_connects_to_a_server_without_it(without_tls: str, connects: Callable[[str], None]) -> None:
    connects(f"{without_tls}/?ssl_mode=preferred")


@pytest.mark.parametrize("mode", ["required", "verify_ca", "verify_identity"])
@pytest.mark.parametrize("connects", [apply, verify])
def test_required_tls_refuses_a_server_without_it(
    without_tls: str, connects: Callable[[str], None], mode: TlsMode
) -> None:
    with pytest.raises(ConnectorError, match="SSL"):
        connects(f"{without_tls}/?ssl_mode={mode}")
