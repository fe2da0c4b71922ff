"""Many rows on MySQL and MariaDB targets: replaced in place where nothing but the key can find them.

The `test_target_*_rows` files run it on both servers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pymysql
import pytest

from connector.errors import TargetDiffers, ValueNotRepresentable
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.mysql.rows.row_writer import FEW
from connector.targets.mysql.server.catalog_checks import takes_upserts
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.table_facts import facts_of
from tests.contract.mysql_place import MySqlPlace
from tests.contract.target_load import begin, end
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, USERS, Applier
from tests.support.net import Row, layout, net

PAIRS = layout("shop.pairs", ["a varchar(40)", "b varchar(60)", "v int"], ["a", "b"])
MANY = range(5000)  # more than a statement has
ITEMS = layout("shop.items", ["id int", "v varchar(20)", "f double", "e enum('a','b')"], ["id"])
CREATE_ITEMS = "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), f DOUBLE, e ENUM('a','b'))"


@pytest.fixture
def applier(place: MySqlPlace) -> Applier:
    """An applier whose tables have the source's definitions: users with a unique mail, items with a key alone."""
    place.definitions = "source"
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE, CREATE_ITEMS)
    made.rows(net(ITEMS, inserts=map(item, MANY)))
    made.rows(net(USERS, inserts=map(user, MANY)))
    return made


def item(number: int, text: str = "old") -> Row:
    return (number, f"{text} {number}", 0.0, "a")


def user(number: int, shift: int = 0) -> Row:
    return (number, "ann", f"{(number + shift) % len(MANY)}")


def deletes_are_refused(place: MySqlPlace, table: str) -> None:
    place.run(
        f"CREATE TRIGGER no_delete BEFORE DELETE ON shop.{table} FOR EACH ROW "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a row is deleted'"
    )


@pytest.mark.parametrize("unique", [False, True])
def test_value_that_is_no_label_is_kept_where_the_log_has_a_part_of_the_row(
    place: MySqlPlace, applier: Applier, unique: bool
) -> None:
    if unique:  # the rows are changed in a temporary table
        applier.sql("ALTER TABLE items ADD UNIQUE (v)")
    applier.rows(net(ITEMS, changed=[({"e": ""}, (1,)), ({"e": "b"}, (2,)), ({"e": "", "f": 1.5}, (3,))]))
    applier.rows(net(ITEMS, moved=[({"id": 9000}, (1,)), ({"id": 9001, "e": ""}, (2,))]))
    read = {row[0]: row for row in place.read(ITEMS) or []}
    assert [read[number] for number in (9000, 9001, 3)] == [
        (9000, "old 1", 0.0, ""),
        (9001, "old 2", 0.0, ""),
        (3, "old 3", 1.5, ""),
    ]


@pytest.mark.parametrize("definitions", ["plain", "source"])
@pytest.mark.parametrize("charset", ["latin1", "utf8mb4", "gbk", "ucs2"])
def test_rows_are_found_by_a_key_of_two_texts(place: MySqlPlace, definitions: Literal["plain"], charset: str) -> None:
    place.definitions = definitions
    applier = Applier(place.open())
    table = f"CREATE TABLE pairs (a VARCHAR(40), b VARCHAR(60), v INT, PRIMARY KEY (a, b)) CHARACTER SET {charset}"
    applier.sql("CREATE DATABASE shop", table)
    keys = [("é", "x"), ("x", "é"), ("üéx", "ü, é"), ("x", "x"), ("", "é;"), ("é", ""), ("'é", "é\\")]
    if definitions == "plain":
        keys += [("x", "X"), ("X", "é")]
    applier.rows(net(PAIRS, inserts=[(*key, 1) for key in keys]))
    applier.rows(net(PAIRS, updates=[(*key, 2) for key in keys[1:]]))
    applier.rows(net(PAIRS, changed=[({"v": 3}, key) for key in keys[2:]]))
    applier.rows(net(PAIRS, moved=[({"b": "ü"}, keys[0])]))
    assert set(place.read(PAIRS) or []) == {("é", "ü", 1), (*keys[1], 2), *((*key, 3) for key in keys[2:])}
    applier.rows(net(PAIRS, deletes=[(*key, 3) for key in keys[2:5]]))
    applier.rows(net(PAIRS, deletes=[("é", "ü", 1), (*keys[1], 2), *((*key, 3) for key in keys[5:])]))
    assert place.read(PAIRS) == []


class TestManyUpdates:
    def test_rows_are_replaced_without_deletes(self, place: MySqlPlace, applier: Applier) -> None:
        deletes_are_refused(place, "items")
        applier.rows(net(ITEMS, updates=[item(number, "new") for number in MANY]))
        assert place.read(ITEMS) == [item(number, "new") for number in MANY]

    def test_rows_that_stay_as_they_are_count_as_there(self, place: MySqlPlace, applier: Applier) -> None:
        deletes_are_refused(place, "items")
        after = [item(number, "old" if number % 3 else "new") for number in MANY]
        applier.rows(net(ITEMS, updates=after))
        assert place.read(ITEMS) == after

    @pytest.mark.parametrize("value", [-0.0, 0.5])
    def test_values_that_only_compare_equal_are_replaced(
        self, place: MySqlPlace, applier: Applier, value: float
    ) -> None:
        applier.rows(net(ITEMS, updates=[(number, f"OLD {number}", value, "a") for number in MANY]))
        read = place.query("SELECT DISTINCT LEFT(BINARY v, 3), CAST(f AS CHAR) FROM shop.items")
        assert read == [(b"OLD", "-0" if str(value) == "-0.0" else "0.5")]

    @pytest.mark.parametrize("number", [FEW, len(MANY)])
    def test_missing_row_stops_with_its_key(self, place: MySqlPlace, applier: Applier, number: int) -> None:
        place.run("DELETE FROM shop.items WHERE id = 7")
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(net(ITEMS, updates=[item(one, "new") for one in range(number)]))
        assert stopped.value.where["rows"] == "id=7"
        assert f"{min(number, 2000) - 1} rows of shop.items were updated" in stopped.value.message
        assert len(place.read(ITEMS) or []) == len(MANY) - 1

    def test_value_that_is_no_label_is_kept(self, place: MySqlPlace, applier: Applier) -> None:
        after = [(number, "new", 0.0, "" if number == 9 else "b") for number in MANY]
        applier.rows(net(ITEMS, updates=after))
        assert place.read(ITEMS) == after

    def test_unique_values_rotate(self, place: MySqlPlace, applier: Applier) -> None:
        applier.rows(net(USERS, updates=[user(number, 1) for number in MANY]))
        assert place.read(USERS) == [user(number, 1) for number in MANY]

    def test_unique_index_that_a_user_has_made_meanwhile_finds_no_row(
        self, place: MySqlPlace, applier: Applier
    ) -> None:
        """Of a missing row with another row's value, that one must not be changed in its place."""
        applier.rows(net(ITEMS, updates=[item(number, "new") for number in MANY]))
        place.run("CREATE UNIQUE INDEX by_user ON shop.items (v)")
        place.run("DELETE FROM shop.items WHERE id = 7")
        rows = [item(number, "new") for number in MANY if number != 8]
        with pytest.raises(TargetDiffers):
            applier.rows(net(ITEMS, updates=[(one[0], "new 8", *one[2:]) if one[0] == 7 else one for one in rows]))

    def test_indexes_stay_until_the_commit_once_they_are_asked_for(self, place: MySqlPlace, applier: Applier) -> None:
        applier.target.stage([net(ITEMS, updates=[item(number, "new") for number in MANY])], last=True)
        place.query("SET SESSION lock_wait_timeout = 1")
        with pytest.raises(pymysql.MySQLError) as refused:
            place.run("CREATE UNIQUE INDEX by_user ON shop.items (v)")
        assert refused.value.args[0] == 1205
        applier.commit()
        place.run("CREATE UNIQUE INDEX by_user ON shop.items (v)")

    @pytest.mark.usefixtures("applier")
    def test_the_question_alone_keeps_indexes_as_they_are(self, place: MySqlPlace) -> None:
        """Else an index could be made between the question and the first row."""
        session = ServerSession(place.url, "a writer")
        try:
            session.query("START TRANSACTION")
            assert takes_upserts(session, ITEMS.name, ["id"])
            place.query("SET SESSION lock_wait_timeout = 1")
            with pytest.raises(pymysql.MySQLError) as refused:
                place.run("CREATE UNIQUE INDEX by_user ON shop.items (v)")
            assert refused.value.args[0] == 1205
            session.query("COMMIT")
            place.run("CREATE UNIQUE INDEX by_user ON shop.items (v)")
            assert not takes_upserts(session, ITEMS.name, ["id"])
        finally:
            session.close()

    def test_key_of_which_the_index_has_a_part_finds_no_other_row(self, place: MySqlPlace, applier: Applier) -> None:
        words = layout("shop.words", ["w varchar(20)", "n int"], ["w"])
        applier.sql("CREATE TABLE words (w VARCHAR(20), n INT, PRIMARY KEY (w(4)))")
        applier.rows(net(words, inserts=[(f"{number:04} word", 1) for number in MANY]))
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(net(words, updates=[(f"{number:04} {'word' if number else 'other'}", 2) for number in MANY]))
        assert stopped.value.where["rows"] == "w='0000 other'"


class TestEngine:
    """A table that others have given an engine without transactions."""

    def test_its_rows_are_refused_before_the_first_one(self, place: MySqlPlace, applier: Applier) -> None:
        applier.target.close()
        place.run("ALTER TABLE shop.items ENGINE = MyISAM")
        for place.definitions in ("source", "plain"):
            again = Applier(place.open())
            with pytest.raises(TargetDiffers, match="has the storage engine MyISAM") as stopped:
                again.rows(net(ITEMS, updates=[item(1, "new")]))
            assert stopped.value.tables == (ITEMS.name,)
            assert "thl load shop.items" in stopped.value.hint
            again.target.discard()
            assert item(1) in (place.read(ITEMS) or [])
            again.target.close()

    @pytest.mark.parametrize("number", [FEW, len(MANY)])
    def test_rows_that_a_rollback_leaves_in_it_are_an_error(
        self, place: MySqlPlace, applier: Applier, number: int
    ) -> None:
        """MySQL refuses them, if it has GTIDs. Others take them, and say at the rollback that they stay."""
        applier.rows(net(ITEMS, updates=[item(number, "new") for number in MANY]))
        place.run("ALTER TABLE shop.items ENGINE = MyISAM")
        place.run("DELETE FROM shop.items WHERE id = 7")
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(net(ITEMS, updates=[item(one, "other") for one in range(number)]))
        assert "without transactions" in stopped.value.message or stopped.value.where["code"] == 1785

    def test_rows_that_are_discarded_in_it_are_an_error(self, place: MySqlPlace, applier: Applier) -> None:
        applier.rows(net(ITEMS, updates=[item(1, "new")]))
        place.run("ALTER TABLE shop.items ENGINE = MyISAM")
        try:
            applier.target.stage([net(ITEMS, updates=[item(1, "other")])], last=True)
        except TargetDiffers as error:  # MySQL with GTIDs
            assert error.where["code"] == 1785
            return
        with pytest.raises(TargetDiffers, match="without transactions"):
            applier.target.discard()


DAYS = layout("shop.days", ["id int", "at timestamp", "day date", "plain int"], ["id"])
CREATE_DAYS = (
    "CREATE TABLE days (id INT {}, at TIMESTAMP NULL, day DATE AS (DATE(at)) STORED, plain INT AS (id * 2) STORED)"
)
UTC, EAST = "2024-02-29", "2024-03-01"  # the day of 23:30 in two time zones


def day(number: int, date: str, hour: int = 23) -> Row:
    return (number, f"2024-02-29 {hour:02}:30:00", date, number * 2)


class TestComputedColumns:
    """The date of a TIMESTAMP is that of the time zone in which the row was written at the source."""

    @pytest.fixture
    def days(self, place: MySqlPlace) -> Applier:
        place.definitions = "source"
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_DAYS.format("PRIMARY KEY"))
        applier.rows(net(DAYS, inserts=[day(number, UTC) for number in range(1000)]))
        return applier

    def test_values_that_are_the_sources_are_applied(self, place: MySqlPlace, days: Applier) -> None:
        after = [(*day(number, "2024-02-29", 1)[:2], UTC, number * 2) for number in range(900)]
        days.rows(net(DAYS, updates=after, inserts=[(2000, None, None, 4000)]))
        days.rows(net(DAYS, changed=[({"at": "2024-03-01 10:00:00", "day": EAST}, (1,))]))
        days.rows(net(DAYS, moved=[({"id": 3000, "at": "2024-03-01 10:00:00", "day": EAST}, (2,))]))
        assert [row[2] for row in place.read(DAYS) or [] if row[0] in (0, 1, 2000, 3000)] == [UTC, EAST, None, EAST]

    @pytest.mark.parametrize(
        "changes",
        [
            net(DAYS, inserts=[day(number, EAST if number == 2700 else UTC) for number in range(2000, 3000)]),
            net(DAYS, inserts=[(2700, None, UTC, 5400)]),
            net(DAYS, updates=[day(number, EAST if number == 700 else UTC) for number in range(1000)]),
            net(DAYS, updates=[day(700, EAST)]),
            net(DAYS, changed=[({"at": "2024-02-29 22:30:00", "day": EAST}, (700,))]),
            net(DAYS, moved=[({"id": 2700, "day": EAST}, (5,))]),
        ],
        ids=["many inserts", "NULL", "many updates", "update", "partial", "moved"],
    )
    def test_value_that_the_target_computes_otherwise_stops_with_its_row(
        self, place: MySqlPlace, days: Applier, changes: NetChanges
    ) -> None:
        with pytest.raises(ValueNotRepresentable, match="another value of day") as stopped:
            days.rows(changes)
        assert stopped.value.where["row"] in ("id=700", "id=2700")
        days.target.discard()
        assert len(place.read(DAYS) or []) == 1000

    def test_value_in_a_table_without_a_key_stops(self, place: MySqlPlace) -> None:
        place.definitions = "source"
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_DAYS.format(""))
        keyless = replace(DAYS, key=())
        applier.rows(net(keyless, inserts=[day(1, UTC), day(1, UTC), day(2, UTC)]))
        with pytest.raises(ValueNotRepresentable, match="another value of day"):
            applier.rows(net(keyless, inserts=[day(1, UTC), day(1, EAST)]))

    def test_plain_tables_have_the_sources_values(self, place: MySqlPlace) -> None:
        place.definitions = "plain"
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_DAYS.format("PRIMARY KEY"))
        applier.rows(net(DAYS, inserts=[day(1, EAST)]))
        assert place.read(DAYS) == [day(1, EAST)]

    @pytest.mark.usefixtures("applier")
    def test_columns_that_may_differ_are_those_of_the_session(self, place: MySqlPlace) -> None:
        ((version,),) = place.query("SELECT VERSION()")
        name = "CONCAT(id)" if "MariaDB" in str(version) else "DATE_FORMAT('2024-01-01', '%a')"  # it refuses this one
        place.run(
            "CREATE TABLE shop.c (id INT, at TIMESTAMP NULL, a INT AS (id * 2) STORED, b DATE AS (DATE(at)) STORED, "
            f"v INT AS (DAYOFMONTH(at)) VIRTUAL, w INT AS (v + 1) STORED, x VARCHAR(9) AS ({name}) STORED, "
            "y DECIMAL(20, 10) AS (id / 3) STORED, z VARCHAR(20) AS (CONCAT(id, 'a')) STORED)"
        )
        session = ServerSession(place.url, "a writer")
        try:
            found = facts_of(session, TableName("shop", "c"))
        finally:
            session.close()
        assert found.by_session == {"b", "w", "y"} | ({"x"} if "DATE" in name else set())
        assert found.computed == {"a", "b", "v", "w", "x", "y", "z"}


class TestManyRowsOfALoad:
    @pytest.mark.parametrize("charset", ["latin1", "utf8mb4"])
    def test_row_that_holds_a_unique_pair_of_texts_is_deleted(self, place: MySqlPlace, charset: str) -> None:
        place.definitions = "source"
        applier = Applier(place.open())
        create = (
            "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50), UNIQUE (name, mail)) "
            f"CHARACTER SET {charset}"
        )
        applier.sql("CREATE DATABASE shop", create)
        applier.rows(net(USERS, inserts=[(1, "é", "ü"), (2, "x", "ü"), (3, "é", None)]))
        begin(applier, create)
        applier.rows(net(USERS, updates=[(11, "É", "ü"), (12, "é", None)]))
        assert place.read(USERS) == [(2, "x", "ü"), (3, "é", None), (11, "É", "ü"), (12, "é", None)]
        end(applier)
        assert place.read(USERS) == [(11, "É", "ü"), (12, "é", None)]

    def test_many_rows_with_a_key_of_two_texts_are_deleted(self, place: MySqlPlace) -> None:
        place.definitions = "source"
        applier = Applier(place.open())
        applier.sql(
            "CREATE DATABASE shop",
            "CREATE TABLE pairs (a VARCHAR(40), b VARCHAR(60), v INT, PRIMARY KEY (a, b)) CHARACTER SET latin1",
        )
        rows = [(f"é{number}", "ü", number) for number in range(1000)]
        applier.rows(net(PAIRS, inserts=rows))
        place.run("DELETE FROM shop.pairs WHERE v = 650")
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(net(PAIRS, deletes=rows[1:]))
        assert stopped.value.where["rows"] == "a='é650', b='ü'"
        applier.target.discard()
        applier.rows(net(PAIRS, deletes=rows[1:650] + rows[651:]))
        assert place.read(PAIRS) == rows[:1]

    def test_unique_values_rotate_in_a_table_whose_load_makes_it(self, place: MySqlPlace) -> None:
        place.definitions = "source"
        applier = Applier(place.open())
        begin(applier)
        applier.rows(net(USERS, updates=map(user, MANY)))
        applier.rows(net(USERS, updates=[user(number, 1) for number in MANY]))
        assert place.read(USERS) == [user(number, 1) for number in MANY]
        end(applier)

    def test_rows_of_a_load_replace_those_that_are_there_without_deletes(
        self, place: MySqlPlace, applier: Applier
    ) -> None:
        begin(applier, CREATE_ITEMS, of=ITEMS)
        deletes_are_refused(place, "items")
        after = [item(number, "read") for number in range(len(MANY) + 1000)]
        applier.rows(net(ITEMS, updates=after))
        end(applier, of=ITEMS)
        assert place.read(ITEMS) == after
