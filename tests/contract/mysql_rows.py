"""Many rows on MySQL and MariaDB targets: replaced in place where nothing but the key can find them.

The `test_target_*_rows` files run it on both servers.
"""

from __future__ import annotations

import pymysql
import pytest

from connector.errors import TargetDiffers
from connector.targets.mysql.catalog_checks import takes_upserts
from connector.targets.mysql.connection import ServerSession
from connector.targets.mysql.rows import FEW
from tests.contract.mysql_place import MySqlPlace
from tests.contract.target_load import begin, end
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, USERS, Applier
from tests.support.net import Row, layout, net

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


class TestManyRowsOfALoad:
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
