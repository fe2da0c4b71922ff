"""The contract of every target for rows of which the log has only some columns; the `test_target_*` files run it."""

from __future__ import annotations

import pytest

from connector.errors import TargetDiffers, Unsupported
from connector.log.compact.net_changes import NetChanges
from tests.contract.target_suite import Applier, Place
from tests.support.net import layout, net

PARTS = layout(
    "shop.parts",
    ["a varchar(20)", "n int", "b blob", "k bigint", "d decimal(9,2)", "f double", "j json", "at datetime(3)"],
    ["k", "a"],
)
CREATE_PARTS = (
    "CREATE TABLE parts (a VARCHAR(20), n INT DEFAULT 5, b BLOB, k BIGINT, d DECIMAL(9,2) DEFAULT 1.5, "
    "f DOUBLE NOT NULL DEFAULT -0.5, j JSON, at DATETIME(3) DEFAULT '2024-02-29 01:02:03', PRIMARY KEY (k, a))"
)
ONE = ("one", 1, b"\x00\xff", 1, "1.00", -0.0, '{"a": 1.10}', "2024-01-01 00:00:00.001")
TWO = ("two", None, b"", 2, None, 1e300, None, None)
THREE = ("three", 3, None, 3, "-9999999.99", 0.1, "null", "1999-12-31 23:59:59.999")


@pytest.fixture
def parts(place: Place) -> Applier:
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_PARTS)
    made.rows(net(PARTS, inserts=[ONE, TWO, THREE]))
    return made


def rows(place: Place) -> list[str]:
    """As text: -0.0 is not 0.0."""
    return sorted(map(repr, place.read(PARTS) or []))


class TestPartial:
    def test_absent_columns_of_an_update_stay(self, place: Place, parts: Applier) -> None:
        parts.rows(
            net(
                PARTS,
                changed=[
                    ({"n": None, "f": 0.5}, (1, "one")),
                    ({"b": b"new", "k": 2, "a": "two"}, (2, "two")),
                    ({"k": 3, "a": "three"}, (3, "three")),
                ],
            )
        )
        one = ("one", None, *ONE[2:5], 0.5, *ONE[6:])
        two = (*TWO[:2], b"new", *TWO[3:])
        assert rows(place) == sorted(map(repr, [one, two, THREE]))

    def test_changed_key_keeps_the_other_columns(self, place: Place, parts: Applier) -> None:
        parts.rows(
            net(
                PARTS,
                deletes=[THREE],
                moved=[({"k": 3, "a": "three", "n": 8}, (1, "one"))],
                inserts=[(*ONE[:1], None, *ONE[2:])],
            )
        )
        moved = ("three", 8, ONE[2], 3, *ONE[4:])
        assert rows(place) == sorted(map(repr, [moved, TWO, (*ONE[:1], None, *ONE[2:])]))

    def test_keys_are_swapped_and_rotated(self, place: Place, parts: Applier) -> None:
        ring = [((2, "two"), (1, "one")), ((3, "three"), (2, "two")), ((1, "one"), (3, "three"))]
        parts.rows(net(PARTS, moved=[({"k": new[0], "a": new[1]}, old) for new, old in ring]))
        expected = [
            ("two", *ONE[1:3], 2, *ONE[4:]),
            ("three", *TWO[1:3], 3, *TWO[4:]),
            ("one", *THREE[1:3], 1, *THREE[4:]),
        ]
        assert rows(place) == sorted(map(repr, expected))

    def test_partial_changes_apply_alike_in_one_batch_and_in_many_stages(self, place: Place, parts: Applier) -> None:
        parts.target.stage([net(PARTS, changed=[({"n": 7}, (1, "one"))], deletes=[TWO])], last=False)
        parts.target.stage([net(PARTS, inserts=[TWO])], last=False)
        parts.target.stage(
            [net(PARTS, moved=[({"k": 9, "a": "one"}, (1, "one"))], updates=[(*TWO[:1], 2, *TWO[2:])])], last=False
        )
        parts.target.stage([net(PARTS, changed=[({"f": 2.5}, (9, "one"))], deletes=[THREE])], last=True)
        parts.commit()
        one = ("one", 7, ONE[2], 9, ONE[4], 2.5, *ONE[6:])
        assert rows(place) == sorted(map(repr, [one, (*TWO[:1], 2, *TWO[2:])]))
        parts.target.close()
        assert place.staging() == 0

    @pytest.mark.parametrize(
        "wrong",
        [
            net(PARTS, changed=[({"n": 7}, (1, "one")), ({"n": 7}, (1, "two"))]),
            net(PARTS, moved=[({"k": 5, "a": "x"}, (4, "four"))]),
            net(PARTS, moved=[({"k": 2, "a": "two"}, (1, "one"))]),
        ],
        ids=["change", "move", "move to a key that is there"],
    )
    def test_missing_row_stops(self, place: Place, parts: Applier, wrong: NetChanges) -> None:
        with pytest.raises(TargetDiffers) as stopped:
            parts.rows(wrong)
        assert str(stopped.value.where["table"]) == "shop.parts"
        parts.target.close()
        assert rows(place) == sorted(map(repr, [ONE, TWO, THREE]))

    def test_table_with_only_a_key_takes_a_partial_update(self, place: Place, applier: Applier) -> None:
        only = layout("shop.only", ["id bigint"], ["id"])
        applier.sql("CREATE TABLE only (id BIGINT PRIMARY KEY)")
        applier.rows(net(only, inserts=[(1,), (2,)]))
        applier.rows(net(only, moved=[({"id": 2}, (1,)), ({"id": 1}, (2,))]))
        assert place.read(only) == [(1,), (2,)]


class TestDefaults:
    def test_absent_columns_of_an_insert_get_their_defaults(self, place: Place, parts: Applier) -> None:
        parts.rows(net(PARTS, deletes=[ONE], added=[{"k": 1, "a": "one"}, {"k": 4, "a": "", "n": None, "b": b"b"}]))
        told = ("one", 5, None, 1, "1.50", -0.5, None, "2024-02-29 01:02:03.000")
        assert rows(place) == sorted(map(repr, [told, ("", None, b"b", 4, *told[4:]), TWO, THREE]))

    def test_partial_changes_of_a_keyless_table_are_applied(self, place: Place, applier: Applier) -> None:
        bare = layout("shop.bare", ["a int", "v varchar(9)"])
        applier.sql("CREATE TABLE bare (a INT DEFAULT 3, v VARCHAR(9) DEFAULT 'z')")
        applier.rows(net(bare, added=[{}, {"v": None}, {"a": 1}]))
        applier.rows(net(bare, deletes=[(3, "z")]))
        assert place.read(bare) == [(1, "z"), (3, None)]

    def test_defaults_survive_a_restart_and_follow_alters(self, place: Place, applier: Applier) -> None:
        applier.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 1, v VARBINARY(3) DEFAULT x'00ff')")
        applier.sql("ALTER TABLE t ADD COLUMN n VARCHAR(9) NOT NULL DEFAULT 'new', MODIFY a INT DEFAULT 3")
        applier.sql("ALTER TABLE t ALTER COLUMN a SET DEFAULT 2")
        applier.sql("ALTER TABLE t RENAME COLUMN v TO w")
        applier.sql("CREATE TABLE u LIKE t")
        applier.target.close()
        again = Applier(place.open())
        for name in ("t", "u"):
            table = layout(f"shop.{name}", ["id int", "a int", "w varbinary(3)", "n varchar(9) not null"], ["id"])
            again.rows(net(table, added=[{"id": 1}]))
            assert place.read(table) == [(1, 2, b"\x00\xff", "new")]

    @pytest.mark.parametrize(
        ("column", "alter"),
        [
            ("v DATETIME DEFAULT CURRENT_TIMESTAMP", ""),
            ("v DATETIME DEFAULT (NOW())", ""),
            ("v DATETIME", "ALTER TABLE t ALTER COLUMN v SET DEFAULT (NOW() + INTERVAL 1 DAY)"),
            ("v DATETIME", "ALTER TABLE t ALTER v SET DEFAULT '2024-01-01 00:00:00', MODIFY v DATETIME(0)"),
            ("v DATETIME DEFAULT '2024-01-01 00:00:00'", "ALTER TABLE t ALTER v DROP DEFAULT"),
        ],
    )
    def test_unknown_defaults_stop(self, place: Place, applier: Applier, column: str, alter: str) -> None:
        applier.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {column})")
        if alter:
            applier.sql(alter)
        table = layout("shop.t", ["id int", "v datetime"], ["id"])
        with pytest.raises(Unsupported) as stopped:
            applier.rows(net(table, added=[{"id": 1}]))
        assert (str(stopped.value.where["table"]), stopped.value.where["column"]) == ("shop.t", "v")
        assert place.read(table) == []
