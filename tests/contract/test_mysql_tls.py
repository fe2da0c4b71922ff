"""A MySQL target without TLS: the applier's sessions and those of `thl verify` get the same answer to `ssl_mode`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from connector.config.target_url import TlsMode
from connector.errors import ConnectorError
from connector.targets.mysql.connection import ServerSession
from connector.verify.mysql import MySqlReader
from tests.contract.mysql_place import MySqlPlace
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
