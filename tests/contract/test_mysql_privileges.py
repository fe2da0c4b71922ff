"""`thl check` asks for the privileges that the statements of a MySQL or MariaDB target need, and for no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pydantic import SecretStr

from connector.config.apply import Target
from connector.errors import MissingPrivilege
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.mysql.entrance import NEEDED
from connector.targets.open import check_target
from tests.contract.mysql_place import MySqlPlace
from tests.support.grants import granted, statements
from tests.support.servers.environment import SqlServer

pytestmark = pytest.mark.servers
CHILD = "CREATE TABLE shop.child (a INT, FOREIGN KEY (a) REFERENCES shop.parent (a))"


@pytest.fixture(params=["mysql_server", "mariadb_server"])
def place(request: pytest.FixtureRequest) -> Iterator[MySqlPlace]:
    """A server whose user `limited` has what is needed but for foreign keys."""
    made = MySqlPlace(request.getfixturevalue(request.param))
    made.run("CREATE USER limited IDENTIFIED BY 'secret'")
    made.run(f"GRANT {', '.join(NEEDED)} ON *.* TO limited")
    made.run("CREATE DATABASE shop")
    made.run("CREATE TABLE shop.parent (a INT PRIMARY KEY)")
    yield made
    made.run("DROP USER limited")
    made.close()


def url_of(place: MySqlPlace, user: str) -> SecretStr:
    return SecretStr(f"mysql://{user}:secret@{place.server.host}:{place.server.port}")


def creates_a_foreign_key(place: MySqlPlace) -> bool:
    session: Any = pymysql.connect(
        host=place.server.host, port=place.server.port, user="limited", password="secret", autocommit=True
    )
    try:
        session.query("SET foreign_key_checks = 0")  # as in the applier's session
        session.query(CHILD)
    except pymysql.MySQLError as error:
        assert "REFERENCES command denied" in str(error)
        return False
    finally:
        session.close()
    return True


def test_check_asks_for_references_where_a_foreign_key_needs_it(place: MySqlPlace) -> None:
    url = url_of(place, "limited")
    assert check_target(Target(url=url, definitions="plain"))
    source = Target(url=url, definitions="source")
    if creates_a_foreign_key(place):
        assert check_target(source)
        return
    with pytest.raises(MissingPrivilege, match="privileges on the target: REFERENCES") as refused:
        check_target(source)
    place.run(refused.value.hint.rstrip(";"))
    assert check_target(source)
    assert creates_a_foreign_key(place)


def test_check_counts_the_privileges_of_active_roles(place: MySqlPlace) -> None:
    place.run("CREATE USER by_role IDENTIFIED BY 'secret'")
    place.run("CREATE ROLE applier")
    for grant in granted(file_of(place), "tables"):
        place.run(f"GRANT {grant} TO applier")
    place.run("GRANT applier TO by_role")
    plain = Target(url=url_of(place, "by_role"))
    with pytest.raises(MissingPrivilege, match="CREATE, ALTER, DROP"):
        check_target(plain)
    place.run(f"SET DEFAULT ROLE applier {'FOR' if mariadb(place) else 'TO'} by_role")
    assert check_target(plain)
    place.run("DROP USER by_role")
    place.run("DROP ROLE applier")


def mariadb(place: MySqlPlace) -> bool:
    ((version,),) = place.query("SELECT @@version")
    return "MariaDB" in str(version)


def file_of(place: MySqlPlace) -> str:
    return f"{'mariadb' if mariadb(place) else 'mysql'}-target.sql"


def test_check_takes_grants_on_databases_and_names_what_is_missing_on_each(place: MySqlPlace) -> None:
    for statement in statements(file_of(place), "user", "tables", user="of_shop", password="secret"):
        place.run(statement)
    options = Target(url=url_of(place, "of_shop"))
    assert check_target(options)
    place.run("REVOKE INDEX, DROP ON `shop`.* FROM of_shop")
    place.run("REVOKE INDEX ON `thl`.* FROM of_shop")
    with pytest.raises(MissingPrivilege, match="privileges on the target: INDEX, DROP") as refused:
        check_target(options)
    assert "GRANT DROP, INDEX ON `shop`.* TO 'of_shop'@'%';" in refused.value.hint
    for grant in refused.value.hint.split("; "):
        place.run(grant.rstrip(";"))
    assert check_target(options)
    place.run("DROP USER of_shop")


@pytest.mark.parametrize("made", [MySqlServer, MariaDbServer])
def test_check_counts_grants_on_names_of_another_case_where_the_server_has_none(
    made: type[MySqlServer | MariaDbServer], tmp_path: Path
) -> None:
    settings = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "lower_case_table_names": "1"}
    with made(tmp_path / "folding", settings=settings, die_with_parent=True) as server:
        place = MySqlPlace(server)
        place.run("CREATE USER of_shop IDENTIFIED BY 'secret'")
        for scope in ("thl", "Shop"):
            place.run(f"GRANT {', '.join(NEEDED)} ON `{scope}`.* TO of_shop")
        options = Target(url=url_of(place, "of_shop"), definitions="plain")
        assert check_target(options, lambda: ["Shop", "SHOP"])
        with pytest.raises(MissingPrivilege):
            check_target(options, lambda: ["Sales"])
        place.close()


@pytest.fixture
def revoking(mysql_server: SqlServer) -> Iterator[MySqlPlace]:
    """A MySQL with partial_revokes=ON, whose user `restricted` has what is needed."""
    place = MySqlPlace(mysql_server)
    place.run("SET GLOBAL partial_revokes = ON")
    place.run("CREATE USER restricted IDENTIFIED BY 'secret'")
    place.run(f"GRANT {', '.join(NEEDED)} ON *.* TO restricted")
    yield place
    place.run("DROP USER restricted")
    place.run("SET GLOBAL partial_revokes = OFF")  # an error as long as a user has such a revoke
    place.close()


@pytest.mark.parametrize("schema", ["shop", "thl"])
def test_check_names_what_a_partial_revoke_takes_from_a_database(revoking: MySqlPlace, schema: str) -> None:
    options = Target(url=url_of(revoking, "restricted"), definitions="plain")
    assert check_target(options, lambda: ["shop"])
    revoking.run(f"REVOKE INSERT, DROP ON `{schema}`.* FROM restricted")
    with pytest.raises(MissingPrivilege, match="privileges on the target: DROP, INSERT") as refused:
        check_target(options, lambda: ["shop", "sales"])
    assert refused.value.hint == f"GRANT DROP, INSERT ON `{schema}`.* TO 'restricted'@'%';"
    revoking.run(refused.value.hint.rstrip(";"))
    assert check_target(options, lambda: ["shop", "sales"])


def test_check_before_there_is_a_log_names_the_databases_that_partial_revokes_take(revoking: MySqlPlace) -> None:
    """They are no failure: `*.*` less a database is what such a revoke is for, and the log need not have it."""
    options = Target(url=url_of(revoking, "restricted"), definitions="plain")
    revoking.run("CREATE DATABASE shop")
    revoking.run("CREATE TABLE shop.t (a INT)")
    assert "partial revokes" not in check_target(options)
    assert inserts(revoking, "shop")
    revoking.run("REVOKE INSERT ON shop.* FROM restricted")
    assert not inserts(revoking, "shop")
    found = check_target(options)
    assert "partial revokes keep it: GRANT INSERT ON `shop`.* TO 'restricted'@'%';" in found
    assert "partial revokes" not in check_target(options, lambda: ["sales"])
    revoking.run("GRANT INSERT ON `shop`.* TO 'restricted'@'%'")
    assert inserts(revoking, "shop")
    assert "partial revokes" not in check_target(options)


def test_nothing_is_wild_in_a_grant_with_partial_revokes(revoking: MySqlPlace) -> None:
    revoking.run("REVOKE ALL ON *.* FROM restricted")
    for scope in ("thl", "shop_1", "shop\\_2", "sh%"):
        revoking.run(f"GRANT {', '.join(NEEDED)} ON `{scope}`.* TO restricted")
    options = Target(url=url_of(revoking, "restricted"), definitions="plain")
    given = []
    for schema in ("shop_1", "shopx1", "shop_2", "shop\\_2", "shoe"):
        revoking.query(f"CREATE DATABASE `{schema}`")
        revoking.query(f"CREATE TABLE `{schema}`.t (a INT)")
        if inserts(revoking, schema):
            given.append(schema)
            assert check_target(options, lambda schema=schema: [schema])
        else:
            with pytest.raises(MissingPrivilege):
                check_target(options, lambda schema=schema: [schema])
    assert given == ["shop_1", "shop\\_2"]


def inserts(place: MySqlPlace, schema: str) -> bool:
    """True if the user `restricted` may write to a database."""
    session: Any = pymysql.connect(
        host=place.server.host, port=place.server.port, user="restricted", password="secret", autocommit=True
    )
    try:
        session.query(f"INSERT INTO `{schema}`.t VALUES (1)")
    except pymysql.MySQLError as error:
        assert error.args[0] in (1044, 1142), error
        return False
    finally:
        session.close()
    return True
