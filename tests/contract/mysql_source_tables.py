"""Tables of MySQL and MariaDB targets as the source has them, on servers whose own defaults are others.

The `test_target_*_ddl` files run it on both servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest

from tests.contract.mysql_place import MySqlPlace
from tests.contract.target_load import begin, end
from tests.contract.target_suite import Applier
from tests.support.net import layout, net

SWAPPED = layout("shop.swapped", ["id int", "u int", "v varchar(20)"], ["id"])
CREATE_SWAPPED = "CREATE TABLE swapped (id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(20))"
NAMED = layout("shop.named", ["name varchar(20)", "n int"], ["name"])
CREATE_NAMED = "CREATE TABLE named (name VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)"
LONG = layout("shop.long", ["name text", "n int"], ["name"])
CREATE_LONG = "CREATE TABLE `long` (name TEXT NOT NULL, n INT, PRIMARY KEY (name(500)))"


@pytest.fixture
def empty_target(place: MySqlPlace) -> Iterator[Applier]:
    """An applier whose tables have the source's definitions."""
    place.definitions = "source"
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop")
    yield made
    made.target.close()


@contextmanager
def setting(place: MySqlPlace, name: str, value: str) -> Iterator[None]:
    """Another default of the target's server."""
    ((before,),) = place.query(f"SELECT @@GLOBAL.{name}")
    place.run(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        place.run(f"SET GLOBAL {name} = {before or 'DEFAULT'!s}")


def created(place: MySqlPlace, table: str) -> str:
    ((_, found),) = place.query(f"SHOW CREATE TABLE shop.{table}")
    return str(found)


class TestDefaultsOfTheServer:
    @pytest.mark.parametrize("variable", ["default_storage_engine", "default_tmp_storage_engine"])
    def test_tables_are_in_innodb_whatever_its_default(
        self, place: MySqlPlace, empty_target: Applier, variable: str
    ) -> None:
        with setting(place, variable, "MyISAM"):
            applier = Applier(place.open())
            applier.sql(CREATE_SWAPPED)
            assert "ENGINE=InnoDB" in created(place, "swapped")
            applier.rows(net(SWAPPED, inserts=[(1, 1, "a"), (2, 2, "b")]))
            applier.rows(net(SWAPPED, changed=[({"u": 2}, (1,)), ({"u": 1}, (2,))]))
        assert place.read(SWAPPED) == [(1, 2, "a"), (2, 1, "b")]

    def test_timestamp_without_null_is_what_the_source_says(self, place: MySqlPlace, empty_target: Applier) -> None:
        times = layout("shop.times", ["id int", "at timestamp"], ["id"])
        wider = layout("shop.times", ["id int", "at timestamp", "seen timestamp"], ["id"])
        with setting(place, "explicit_defaults_for_timestamp", "OFF"):
            applier = Applier(place.open())
            applier.sql("CREATE TABLE times (id INT PRIMARY KEY, at TIMESTAMP)", explicit_defaults_for_timestamp="1")
            applier.rows(net(times, inserts=[(1, None)]))
            applier.sql("ALTER TABLE times ADD seen TIMESTAMP", explicit_defaults_for_timestamp="1")
        assert place.read(wider) == [(1, None, None)]

    @pytest.mark.parametrize("definitions", ["source", "plain"])
    def test_timestamp_that_the_log_lacks_stays(
        self, place: MySqlPlace, empty_target: Applier, definitions: Literal["source", "plain"]
    ) -> None:
        """The key of a plain table, and a column of the temporary table in which rows are changed, get ON UPDATE."""
        times = layout("shop.times", ["at timestamp", "seen timestamp not null", "u int", "v int"], ["at"])
        create = "CREATE TABLE times (at TIMESTAMP NOT NULL PRIMARY KEY, seen TIMESTAMP NOT NULL, u INT, v INT"
        create += ", UNIQUE (u))" if definitions == "source" else ")"
        place.definitions = definitions
        row = ("2024-01-01 10:00:00", "2024-01-02 10:00:00")
        with setting(place, "explicit_defaults_for_timestamp", "OFF"):
            applier = Applier(place.open())
            applier.sql(create, explicit_defaults_for_timestamp="1")
            applier.rows(net(times, inserts=[(*row, 1, 1)]))
            applier.rows(net(times, changed=[({"v": 2}, row[:1])]))
        assert place.read(times) == [(*row, 1, 2)]

    def test_claim_and_keys_of_text_do_not_depend_on_its_row_format(
        self, place: MySqlPlace, empty_target: Applier
    ) -> None:
        wide = layout("shop.wide", ["name varchar(300)"], ["name"])
        empty_target.target.close()
        place.drop_all()
        place.definitions = "plain"
        with setting(place, "innodb_default_row_format", "'compact'"):
            applier = Applier(place.open())
            applier.sql("CREATE DATABASE shop", "CREATE TABLE wide (name VARCHAR(300) PRIMARY KEY)")
        applier.rows(net(wide, inserts=[("a",)]))
        assert place.read(wide) == [("a",)]

    def test_utf8mb4_without_a_collation_is_that_of_an_older_source(
        self, place: MySqlPlace, empty_target: Applier
    ) -> None:
        """Its definitions do not name utf8mb4_general_ci, in which two letters of German are no third one."""
        create = (
            "CREATE TABLE `named` (`name` varchar(20) NOT NULL, `n` int, PRIMARY KEY (`name`)) DEFAULT CHARSET=utf8mb4"
        )
        begin(empty_target, create, of=NAMED)
        empty_target.rows(net(NAMED, updates=[("ss", 1), ("ß", 2)]))
        end(empty_target, of=NAMED)
        assert place.read(NAMED) == [("ss", 1), ("ß", 2)]

    def test_default_collation_of_one_statement_is_not_that_of_the_next(
        self, place: MySqlPlace, empty_target: Applier
    ) -> None:
        create = "CREATE TABLE {} (name VARCHAR(9) PRIMARY KEY) CHARSET utf8mb4"
        before = "general" if empty_target.target._db.mariadb else "utf8mb4_0900_ai_ci"  # type: ignore[attr-defined]
        empty_target.sql(create.format("a"), default_collation_for_utf8mb4="45")
        empty_target.sql(create.format("b"), default_collation_for_utf8mb4="255")
        assert "0900" not in created(place, "a")
        assert before in created(place, "b")

    def test_collation_of_a_database_is_changed(self, place: MySqlPlace, empty_target: Applier) -> None:
        words = layout("shop.words", ["name varchar(9)"], ["name"])
        empty_target.sql("ALTER DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        empty_target.sql("CREATE TABLE words (name VARCHAR(9) PRIMARY KEY)")
        empty_target.rows(net(words, inserts=[("a",), ("A",)]))
        empty_target.sql("ALTER DATABASE absent COLLATE utf8mb4_bin")
        assert place.read(words) == [("A",), ("a",)]

    def test_no_transaction_begins_after_a_commit(self, place: MySqlPlace, empty_target: Applier) -> None:
        with setting(place, "completion_type", "CHAIN"):
            applier = Applier(place.open())
            applier.sql(CREATE_SWAPPED)
            applier.rows(net(SWAPPED, inserts=[(1, 1, "a")]))
            applier.sql("ALTER TABLE swapped ADD n INT")
        assert place.query("SELECT * FROM shop.swapped") == [(1, 1, "a", None)]

    def test_table_without_a_key_gets_none(self, place: MySqlPlace, empty_target: Applier) -> None:
        if not place.query("SHOW VARIABLES LIKE 'sql_generate_invisible_primary_key'"):
            pytest.skip("a MariaDB makes no invisible keys")
        with setting(place, "sql_generate_invisible_primary_key", "ON"):
            applier = Applier(place.open())
            applier.sql("CREATE TABLE loose (n INT)", "ALTER TABLE loose ADD PRIMARY KEY (n)")
        assert "my_row_id" not in created(place, "loose")


class TestLoads:
    def test_unique_values_are_swapped_while_the_table_is_loaded(
        self, place: MySqlPlace, empty_target: Applier
    ) -> None:
        begin(empty_target, CREATE_SWAPPED, of=SWAPPED)
        empty_target.rows(net(SWAPPED, updates=[(1, 1, "one"), (2, 2, "two")]))
        empty_target.rows(net(SWAPPED, updates=[(1, 2, "one"), (2, 1, "two")]))
        empty_target.rows(net(SWAPPED, updates=[(3, 2, "three"), (1, 9, "one")]))  # the load has not brought it yet
        assert place.read(SWAPPED) == [(1, 9, "one"), (2, 1, "two"), (3, 2, "three")]
        end(empty_target, of=SWAPPED)
        assert place.read(SWAPPED) == [(1, 9, "one"), (2, 1, "two"), (3, 2, "three")]

    def test_key_gets_the_bytes_of_the_source(self, place: MySqlPlace, empty_target: Applier) -> None:
        empty_target.sql(CREATE_NAMED)
        empty_target.rows(net(NAMED, inserts=[("ABC", 1), ("other", 2)]))
        place.run("UPDATE named SET name = 'abc' WHERE n = 1")
        begin(empty_target, CREATE_NAMED, of=NAMED)
        empty_target.rows(net(NAMED, updates=[("ABC", 1), ("other", 2)]))
        end(empty_target, of=NAMED)
        assert place.read(NAMED) == [("ABC", 1), ("other", 2)]

    def test_long_keys_that_begin_alike_are_kept(self, place: MySqlPlace, empty_target: Applier) -> None:
        rows = [("a" * 300 + end, n) for n, end in enumerate("xyz")]
        empty_target.sql(CREATE_LONG)
        empty_target.rows(net(LONG, inserts=rows))
        begin(empty_target, CREATE_LONG, of=LONG)
        keys = place.query(
            "SELECT 1 FROM information_schema.statistics WHERE table_schema = 'thl' AND index_name = 'PRIMARY' AND "
            "table_name LIKE 'thl\\_marks\\_%'"
        )
        assert len(keys) == 1  # a group of servers changes no table without a primary key
        empty_target.rows(net(LONG, updates=rows[:2]))
        empty_target.rows(net(LONG, updates=rows[:1]))
        end(empty_target, of=LONG)
        assert place.read(LONG) == rows[:2]
