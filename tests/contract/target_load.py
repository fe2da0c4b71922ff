"""The contract of every target for loads of tables among the stream's events; the `test_target_*` files run it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from connector.errors import TargetDiffers, Unsupported
from connector.log.compact.net_changes import Ddl
from connector.log.ids import UNKNOWN_SHARD, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.load import LoadEvent, Part
from connector.targets.bookkeeping import BASE_VERSION, version_of
from connector.targets.target_schema import QUARANTINED, LoadContent
from tests.contract.target_again import made, random_changes
from tests.contract.target_partial import CREATE_PARTS, ONE, PARTS, THREE, TWO
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, LOOSE, USERS, Applier, Place
from tests.contract.target_transactions import ALL, metadata, wide
from tests.contract.target_ways_out import again, exclude
from tests.support.fragments import load_record, record, statement
from tests.support.long import long
from tests.support.net import Row, layout, net
from tests.unit.applier.test_core import Rig, history, log, table

LOADING_VERSION = version_of(intent=False, loading=True)
ANN, BOB, EVE = (1, "ann", "a"), (2, "bob", "b"), (3, "eve", "e")
PEOPLE = layout("shop.people", ["id int", "name varchar(50)", "mail varchar(50)"], ["id"])
ORDERS = layout("shop.orders", ["id int", "v varchar(100)"], ["id"])
CREATE_ORDERS = "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(100))"


def stage_load(applier: Applier, part: Part, *sql: str, of: TableLayout = USERS, load: str = "l1") -> None:
    statements = [Statement("shop", one, {}) for one in sql]
    ddl = Ddl(seqno=Seqno(applier.position.seqno + 1), statements=statements, commit_time=1_700_000_000_123_456)
    applier.target.load(LoadEvent(load, part, of.name), ddl)


def begin(applier: Applier, create: str = CREATE_USERS, *, of: TableLayout = USERS, load: str = "l1") -> None:
    stage_load(applier, Part.BEGIN, "CREATE DATABASE IF NOT EXISTS shop", create, of=of, load=load)
    applier.commit()


def end(applier: Applier, *, of: TableLayout = USERS, load: str = "l1", consistent: bool = True) -> None:
    stage_load(applier, Part.END, of=of, load=load)
    applier.commit(consistent=consistent)


def whole(applier: Applier, *rows: Any, of: TableLayout = LOOSE) -> None:
    stage_load(applier, Part.WHOLE, of=of)
    applier.target.stage([net(of, inserts=rows)], last=True)
    applier.commit(rows=len(rows))


def shown(place: Place) -> tuple[bool, int]:
    """What readers and other versions find in `thl_position`."""
    prefix = "" if place.schemaless else "thl."
    ((consistent, version),) = place.query(f"SELECT consistent, schema_version FROM {prefix}thl_position")
    return bool(consistent), int(str(version))


def states(place: Place) -> dict[str, LoadContent]:
    with place.signals() as signals:
        return {str(name): entry.state for name, entry in signals.loading("shop").items()}


def marks(place: Place) -> int:
    """The number of tables of marks."""
    return place.marks()


def called(place: Place, of: TableLayout) -> str:
    """The name of a table at the target."""
    return f'"{of.name}"' if place.schemaless else str(of.name)


def unique(place: Place, of: TableLayout, column: str) -> None:
    """A user's unique index, which no transaction can defer."""
    place.run(f"CREATE UNIQUE INDEX by_user ON {called(place, of)} ({column})")


def note_deletes(place: Place, of: TableLayout, *, on: bool = True) -> None:
    """A user's trigger that writes down the first column of each deleted row."""
    name = called(place, of)
    if not on:
        place.forget_deletes(name)
        return
    gone = "gone" if place.schemaless else "shop.gone"
    place.run(f"CREATE TABLE IF NOT EXISTS {gone} (id integer)")
    place.note_deletes(name, f"INSERT INTO {gone} VALUES (old.{of.columns[0].name})")


def deleted(place: Place) -> list[Row]:
    """What `note_deletes` has written down."""
    return place.query(f"SELECT id FROM {'gone' if place.schemaless else 'shop.gone'}")


class TestLoadOfNewTable:
    def test_unknown_table_is_made_and_its_rows_are_upserts_until_the_end(self, place: Place) -> None:
        applier = Applier(place.open())
        begin(applier)
        assert states(place) == {"shop.users": LoadContent.NEW}
        applier.rows(net(USERS, updates=[ANN, BOB]))  # a load's rows, as compaction leaves them
        applier.rows(net(USERS, updates=[(1, "ann", "new"), EVE], inserts=[BOB], deletes=[(9, None, None)]))
        assert place.read(USERS) == [(1, "ann", "new"), BOB, EVE]
        end(applier)
        assert (states(place), marks(place)) == ({}, 0)
        assert place.read(USERS) == [(1, "ann", "new"), BOB, EVE]
        with pytest.raises(TargetDiffers):
            applier.rows(net(USERS, updates=[(9, None, None)]))

    def test_target_is_not_consistent_while_a_table_is_loaded(self, place: Place, applier: Applier) -> None:
        begin(applier, "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))", of=PEOPLE)
        assert shown(place) == (False, LOADING_VERSION)
        applier = again(place, applier)
        assert applier.position.consistent
        with place.signals() as signals:
            (entry,) = signals.loading("shop").values()
        assert (entry.load, entry.since) == ("l1", 1)
        begin(applier)
        end(applier, of=PEOPLE)
        assert shown(place) == (False, LOADING_VERSION)
        end(applier)
        assert shown(place) == (True, BASE_VERSION)

    def test_end_of_a_load_leaves_another_reason_to_be_not_consistent(self, place: Place, applier: Applier) -> None:
        applier.commit(consistent=False)
        stage_load(applier, Part.BEGIN, CREATE_USERS)
        applier.commit(consistent=False)
        applier = again(place, applier)
        assert not applier.position.consistent
        end(applier, consistent=False)
        assert shown(place) == (False, BASE_VERSION)
        assert not again(place, applier).position.consistent

    def test_target_that_becomes_consistent_during_a_load_is_so_after_it(self, place: Place, applier: Applier) -> None:
        applier.commit(consistent=False)
        stage_load(applier, Part.BEGIN, CREATE_USERS)
        applier.commit(consistent=False)
        applier.commit()
        assert shown(place) == (False, LOADING_VERSION)
        applier = again(place, applier)
        assert applier.position.consistent
        end(applier)
        assert shown(place) == (True, BASE_VERSION)

    def test_discarded_begin_loads_nothing(self, place: Place, applier: Applier) -> None:
        stage_load(applier, Part.BEGIN, CREATE_USERS)
        applier.target.discard()
        applier.commit()
        assert (states(place), shown(place)) == ({}, (True, BASE_VERSION))

    def test_table_with_only_a_key_is_loaded(self, place: Place, applier: Applier) -> None:
        only = layout("shop.only", ["id bigint"], ["id"])
        begin(applier, "CREATE TABLE only (id BIGINT PRIMARY KEY)", of=only)
        applier.rows(net(only, updates=[(1,), (2,)]))
        applier.rows(net(only, updates=[(2,), (3,)], deletes=[(1,)]))
        assert place.read(only) == [(2,), (3,)]

    def test_same_rows_in_several_stages_of_one_commit(self, place: Place) -> None:
        applier = Applier(place.open())
        begin(applier)
        for name in ("a", "b", "c"):
            applier.target.stage([net(USERS, updates=[(1, name, None), (2, name, None)])], last=False)
        applier.commit(rows=6)
        assert place.read(USERS) == [(1, "c", None), (2, "c", None)]

    def test_rows_have_the_metadata_columns_of_their_last_event(self, place: Place) -> None:
        applier = Applier(place.open(columns=ALL))
        begin(applier)
        applier.rows(net(wide(USERS), updates=[(*ANN, *metadata(1)), (*BOB, *metadata(1))]))
        applier.rows(net(wide(USERS), updates=[(*BOB, *metadata(2))]))
        end(applier)
        begin(applier, load="l2")
        applier.rows(net(wide(USERS), updates=[(*ANN, *metadata(5)), (*EVE, *metadata(5))]))
        applier.rows(net(wide(USERS), updates=[(*EVE, *metadata(6))]))
        end(applier, load="l2")
        assert place.read(wide(USERS)) == [(*ANN, *metadata(5)), (*EVE, *metadata(6))]


class TestLoadOfKnownTable:
    def test_rows_that_only_the_target_has_are_deleted_at_the_end(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(id_, "old", None) for id_ in range(1000)]))
        begin(applier)
        assert (states(place), marks(place)) == ({"shop.users": LoadContent.MARKED}, 1)
        applier.rows(net(USERS, updates=[(id_, "read", None) for id_ in range(300, 400)]))
        applier = again(place, applier)
        applier.rows(net(USERS, inserts=[(2000, "new", None)], updates=[(1, "new", None)], deletes=[(300, "", None)]))
        applier.rows(net(USERS, deletes=[(999, "old", None), (5000, None, None)]))
        assert len(place.read(USERS) or []) == 999
        end(applier)
        read = [(id_, "read", None) for id_ in range(301, 400)]
        assert place.read(USERS) == [(1, "new", None), *read, (2000, "new", None)]
        assert (states(place), marks(place)) == ({}, 0)

    def test_changed_keys_and_swapped_unique_values_beside_older_rows(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(5, "old", "a"), (6, "old", "b"), (7, "old", "c"), (8, "old", "d")]))
        unique(place, USERS, "mail")
        begin(applier)
        applier.rows(net(USERS, updates=[(1, "ann", "a"), (2, "bob", "b")]))
        assert [row[0] for row in place.read(USERS) or []] == [1, 2, 7, 8]
        applier.rows(net(USERS, updates=[(1, "ann", "b"), (2, "bob", "a")]))  # a swap
        applier.rows(net(USERS, deletes=[(1, "ann", "b")], inserts=[(7, "ann", "d")]))  # a key that is there, too
        assert place.read(USERS) == [(2, "bob", "a"), (7, "ann", "d")]
        applier.rows(net(USERS, changed=[({"id": 2, "mail": "c"}, (2,))]))
        end(applier)
        assert place.read(USERS) == [(2, "bob", "c"), (7, "ann", "d")]

    def test_partial_change_takes_a_unique_value_from_an_older_row(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(5, "old", "a"), (6, "old", "b")]))
        unique(place, USERS, "mail")
        begin(applier)
        applier.rows(net(USERS, updates=[(1, "ann", "x")]))
        applier.rows(net(USERS, changed=[({"id": 1, "mail": "b"}, (1,)), ({"id": 7, "mail": "a"}, (7,))]))
        end(applier)
        assert place.read(USERS) == [(1, "ann", "b")]

    def test_partial_change_of_half_a_unique_value_takes_it_from_an_older_row(
        self, place: Place, applier: Applier
    ) -> None:
        applier.rows(net(USERS, inserts=[(5, "ann", "m"), (6, "bob", "m"), (7, "eve", "m"), (8, "ann", "n")]))
        unique(place, USERS, "name, mail")
        begin(applier)
        applier.rows(net(USERS, updates=[(1, "ann", "x"), (2, "bob", "y")]))
        changed = [({"id": 1, "mail": "m"}, (1,)), ({"id": 2, "name": "eve"}, (2,)), ({"id": 7, "mail": "m"}, (7,))]
        applier.rows(net(USERS, changed=changed))
        expected = [(1, "ann", "m"), (2, "eve", "y"), (6, "bob", "m"), (7, "eve", "m"), (8, "ann", "n")]
        assert place.read(USERS) == expected
        applier.rows(net(USERS, changed=[({"id": 2, "mail": "m"}, (2,)), ({"id": 9, "name": "bob"}, (9,))]))
        assert place.read(USERS) == [(1, "ann", "m"), (2, "eve", "m"), (6, "bob", "m"), (8, "ann", "n")]
        end(applier)
        assert place.read(USERS) == [(1, "ann", "m"), (2, "eve", "m")]

    def test_rows_of_a_load_fire_no_trigger_of_deletes(self, place: Place, applier: Applier) -> None:
        many = [(id_, "old", None) for id_ in range(10, 2000)]
        applier.rows(net(USERS, inserts=[ANN, BOB, EVE, *many]))
        note_deletes(place, USERS)
        begin(applier)
        applier.rows(net(USERS, updates=[ANN, BOB]))
        applier.rows(net(USERS, updates=[(id_, "new", None) for id_, *_ in many]))
        applier.rows(net(USERS, updates=[(1, "ann", "new")], changed=[({"id": 2, "mail": "m"}, (2,))]))
        assert deleted(place) == []
        end(applier)
        assert deleted(place) == [(3,)]  # what the source has no longer
        assert place.read(USERS) == [(1, "ann", "new"), (2, "bob", "m"), *((id_, "new", None) for id_, *_ in many)]

    def test_trigger_of_deletes_beside_a_unique_index_stops_the_load(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN, BOB]))
        unique(place, USERS, "mail")
        note_deletes(place, USERS)
        with pytest.raises(TargetDiffers, match="trigger by_user") as stopped:
            begin(applier)
        assert stopped.value.tables == (USERS.name,)
        assert all(way in stopped.value.hint for way in ("DROP TRIGGER", "unique index", "--exclude-table shop.users"))
        applier = again(place, applier)
        note_deletes(place, USERS, on=False)
        begin(applier)
        applier.rows(net(USERS, updates=[ANN]))
        note_deletes(place, USERS)
        with pytest.raises(TargetDiffers, match="trigger by_user") as stopped:
            applier.rows(net(USERS, updates=[ANN]))
        assert stopped.value.tables == (USERS.name,)
        applier = again(place, applier)
        note_deletes(place, USERS, on=False)
        end(applier)
        assert (place.read(USERS), deleted(place)) == ([ANN], [])

    def test_trigger_of_deletes_stops_a_new_table_that_begins_again(self, place: Place) -> None:
        applier = Applier(place.open())
        begin(applier)
        applier.rows(net(USERS, updates=[ANN]))
        note_deletes(place, USERS)
        with pytest.raises(TargetDiffers, match="trigger by_user"):
            begin(applier, load="l2")
        applier = again(place, applier)
        assert deleted(place) == []

    def test_trigger_of_deletes_stops_the_load_of_a_table_without_a_key(self, place: Place, applier: Applier) -> None:
        row = TestLoadWithoutKey.A
        applier.rows(net(LOOSE, inserts=[row]))
        note_deletes(place, LOOSE)
        with pytest.raises(TargetDiffers, match="trigger by_user"):
            begin(applier, CREATE_LOOSE, of=LOOSE)
        applier = again(place, applier)
        note_deletes(place, LOOSE, on=False)
        begin(applier, CREATE_LOOSE, of=LOOSE)
        note_deletes(place, LOOSE)
        with pytest.raises(TargetDiffers, match="trigger by_user"):
            whole(applier, row)
        again(place, applier)
        assert (place.read(LOOSE), deleted(place)) == ([row], [])

    def test_other_definition_stops_with_the_way_out(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        for create in (
            "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50))",
            "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail DATE)",
            "CREATE TABLE users (id INT, name VARCHAR(50), mail VARCHAR(50), PRIMARY KEY (id, name))",
            "CREATE TABLE users (id INT, name VARCHAR(50), mail VARCHAR(50))",
        ):
            with pytest.raises(TargetDiffers, match="another definition") as stopped:
                begin(applier, create)
            assert "--exclude-table shop.users" in stopped.value.hint
            assert stopped.value.where["seqno"] == applier.position.seqno + 1
            assert stopped.value.tables == (USERS.name,)
            applier = again(place, applier)
        assert (place.read(USERS), states(place)) == ([ANN], {})

    def test_key_that_only_the_load_has_stops(self, applier: Applier) -> None:
        applier.sql("CREATE TABLE pair (a INT NOT NULL, b INT NOT NULL)")
        with pytest.raises(TargetDiffers, match="another definition"):
            begin(applier, "CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b))", of=layout("shop.pair", ["a int"]))

    def test_definition_that_is_not_understood_stops(self, place: Place, applier: Applier) -> None:
        with pytest.raises(Unsupported) as stopped:
            begin(applier, "CREATE TABLE odd (a NONSENSE)", of=layout("shop.odd", ["a int"]))
        assert "--exclude-table shop.odd" in stopped.value.hint

    def test_load_that_begins_again_starts_over(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN, BOB, EVE]))
        begin(applier)
        applier.rows(net(USERS, updates=[ANN, (4, "gone", None)]))
        begin(applier, load="l2")
        assert (len(place.read(USERS) or []), marks(place)) == (4, 1)
        applier.rows(net(USERS, updates=[BOB]))
        with pytest.raises(TargetDiffers, match="another load"):
            end(applier, load="l1")
        applier = again(place, applier)
        end(applier, load="l2")
        assert place.read(USERS) == [BOB]

    def test_load_of_a_new_table_that_begins_again_starts_over(self, place: Place) -> None:
        applier = Applier(place.open())
        begin(applier)
        applier.rows(net(USERS, updates=[ANN, BOB]))
        begin(applier, load="l2")
        applier.rows(net(USERS, updates=[BOB, EVE]))
        end(applier, load="l2")
        assert place.read(USERS) == [BOB, EVE]


class TestLoadOfExcludedTable:
    def test_excluded_table_is_made_anew(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        exclude(applier, "users")
        applier.rows(net(USERS, updates=[BOB]))
        wider = layout("shop.users", ["id int", "name varchar(50)", "mail varchar(50)", "n int"], ["id"])
        begin(applier, "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50), n INT)")
        with place.signals() as signals:
            assert signals.excluded("shop") == {}
        assert states(place) == {"shop.users": LoadContent.NEW}
        applier.rows(net(wider, updates=[(*BOB, 7)]))
        end(applier)
        assert place.read(wider) == [(*BOB, 7)]

    def test_table_that_joins_is_left_out_until_its_load(self, place: Place, applier: Applier) -> None:
        with pytest.raises(TargetDiffers, match=r"has not created table shop\.people") as stopped:
            applier.rows(net(PEOPLE, updates=[BOB]))
        assert stopped.value.tables == (PEOPLE.name,)
        assert "--exclude-table shop.people" in stopped.value.hint
        applier = again(place, applier)
        exclude(applier, "people")
        applier.rows(net(PEOPLE, updates=[BOB]))
        applier.sql("ALTER TABLE people ADD n INT, DROP n")
        begin(applier, "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))", of=PEOPLE)
        applier.rows(net(PEOPLE, updates=[EVE]))
        end(applier, of=PEOPLE)
        assert place.read(PEOPLE) == [EVE]

    @pytest.mark.parametrize("way", ["quarantined by its beginning", "definition refused"])
    def test_table_whose_beginning_is_refused_is_not_loaded(self, place: Place, applier: Applier, way: str) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        refused = way == "definition refused"
        exclude(applier, "users", reason="why" if refused else f"{QUARANTINED}why")
        begin(applier, "CREATE TABLE users (id NONSENSE)" if refused else CREATE_USERS)
        applier.rows(net(USERS, updates=[BOB]))
        stage_load(applier, Part.WHOLE)
        applier.commit()
        end(applier)
        assert (place.read(USERS), states(place)) == ([ANN], {})
        with place.signals() as signals:
            assert [entry.changes for entry in signals.excluded("shop").values()] == [1]

    def test_excluded_table_whose_beginning_is_quarantined_stays_excluded(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        exclude(applier, "users")
        applier.rows(net(USERS, updates=[BOB]))
        exclude(applier, "users")  # by hand once more: the older one stays
        exclude(applier, "users", reason=f"{QUARANTINED}why")
        since = applier.position.seqno + 1
        begin(applier)
        applier = again(place, applier)
        applier.rows(net(USERS, updates=[BOB]))
        end(applier)
        assert (place.read(USERS), states(place)) == ([ANN], {})
        with place.signals() as signals:
            (entry,) = signals.excluded("shop").values()
        assert (entry.since, entry.reason, entry.changes) == (since, f"{QUARANTINED}why", 2)

    def test_table_excluded_right_before_its_load_is_loaded(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        exclude(applier, "users")
        begin(applier)
        applier.rows(net(USERS, updates=[BOB]))
        end(applier)
        assert place.read(USERS) == [BOB]

    def test_table_excluded_during_its_load_is_not_loaded_any_more(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        begin(applier)
        exclude(applier, "users")
        assert (states(place), marks(place)) == ({}, 0)
        applier.rows(net(USERS, updates=[BOB]))
        end(applier)
        assert place.read(USERS) == [ANN]


class TestLoadWithoutKey:
    A, B, C = (1, "a", 0.5, None), (2, None, None, "{}"), (3, "c", None, None)

    def test_rows_replace_what_is_there_and_later_changes_are_strict(self, place: Place, applier: Applier) -> None:
        applier.rows(net(LOOSE, inserts=[self.A, self.A, self.B]))
        begin(applier, CREATE_LOOSE, of=LOOSE)
        applier.rows(net(LOOSE, inserts=[self.C], deletes=[self.C]))  # dropped: `whole` has what it leaves
        assert place.read(LOOSE) == [self.A, self.A, self.B]
        assert states(place) == {"shop.loose": LoadContent.AWAITS_ROWS}
        whole(applier, self.B, self.C)
        applier = again(place, applier)
        assert place.read(LOOSE) == [self.B, self.C]
        applier.rows(net(LOOSE, inserts=[self.C], deletes=[self.B]))
        end(applier, of=LOOSE)
        assert (place.read(LOOSE), states(place)) == ([self.C, self.C], {})
        with pytest.raises(TargetDiffers):
            applier.rows(net(LOOSE, deletes=[self.A]))

    def test_rows_that_come_again_replace_the_first(self, place: Place, applier: Applier) -> None:
        begin(applier, CREATE_LOOSE, of=LOOSE)
        whole(applier, self.A, self.B)
        whole(applier, self.B)
        assert place.read(LOOSE) == [self.B]

    def test_new_table_waits_for_its_rows(self, place: Place) -> None:
        applier = Applier(place.open())
        begin(applier, CREATE_LOOSE, of=LOOSE)
        applier.rows(net(LOOSE, deletes=[self.A]))
        whole(applier, self.A)
        end(applier, of=LOOSE)
        assert place.read(LOOSE) == [self.A]

    def test_end_without_the_rows_stops(self, place: Place, applier: Applier) -> None:
        begin(applier, CREATE_LOOSE, of=LOOSE)
        with pytest.raises(TargetDiffers, match="without its rows"):
            end(applier, of=LOOSE)

    def test_rows_of_a_table_that_is_not_loaded_stop(self, place: Place, applier: Applier) -> None:
        applier.rows(net(LOOSE, inserts=[self.A]))
        with pytest.raises(TargetDiffers, match="does not load"):
            whole(applier, self.B)
        again(place, applier)
        assert place.read(LOOSE) == [self.A]

    def test_staged_rows_that_are_discarded_leave_the_old_ones(self, place: Place, applier: Applier) -> None:
        applier.rows(net(LOOSE, inserts=[self.A]))
        begin(applier, CREATE_LOOSE, of=LOOSE)
        stage_load(applier, Part.WHOLE, of=LOOSE)
        applier.target.stage([net(LOOSE, inserts=[self.B])], last=False)
        applier.target.discard()
        applier.commit()
        assert (place.read(LOOSE), states(place)) == ([self.A], {"shop.loose": LoadContent.AWAITS_ROWS})


class TestLoadWithPartialImages:
    MOVED = net(PARTS, moved=[({"k": 9, "a": "one", "n": 7}, (1, "one"))])

    def begun(self, place: Place, *older: Any) -> Applier:
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop")
        if older:
            applier.sql(CREATE_PARTS)
            applier.rows(net(PARTS, inserts=older))
        begin(applier, CREATE_PARTS, of=PARTS)
        return applier

    @pytest.mark.parametrize("older", [(), (TWO,)], ids=["new", "marked"])
    def test_changes_and_deletes_of_rows_that_were_not_read_are_no_error(self, place: Place, older: Any) -> None:
        applier = self.begun(place, *older)
        applier.rows(net(PARTS, changed=[({"n": 1}, (1, "one")), ({"n": 8}, (3, "three"))], deletes=[TWO]))
        applier.rows(net(PARTS, updates=[ONE]))
        applier.rows(net(PARTS, changed=[({"n": 5}, (1, "one"))]))
        end(applier, of=PARTS)
        assert place.read(PARTS) == [("one", 5, *ONE[2:])]

    @pytest.mark.parametrize("older", [(), (TWO,), (TWO, ONE)], ids=["new", "marked", "marked, an older row"])
    def test_changed_key_of_a_row_that_was_not_read_stops_with_the_way_out(self, place: Place, older: Any) -> None:
        applier = self.begun(place, *older)
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(self.MOVED)
        assert "binlog_row_image = FULL" in stopped.value.hint
        assert str(stopped.value.where["table"]) == "shop.parts"
        text = str(stopped.value.where["rows"])
        assert all(value in text for value in ("k=1", "one"))

    @pytest.mark.parametrize("older", [(), (TWO, THREE, ("one", 3, None, 9, None, 0.5, None, None))])
    def test_changed_key_of_a_row_that_was_read_keeps_its_columns(self, place: Place, older: Any) -> None:
        applier = self.begun(place, *older)
        applier.rows(net(PARTS, updates=[ONE, TWO]))
        applier.rows(self.MOVED)
        applier.rows(net(PARTS, added=[{"k": 1, "a": "one", "f": 0.0}]))
        end(applier, of=PARTS)
        added = ("one", 5, None, 1, "1.50", 0.0, None, "2024-02-29 01:02:03.000")
        expected = [added, ("one", 7, ONE[2], 9, *ONE[4:]), TWO]
        assert sorted(map(repr, place.read(PARTS) or [])) == sorted(map(repr, expected))


class TestDuringLoad:
    def test_dropped_table_is_not_loaded_any_more(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        begin(applier)
        applier.sql("DROP TABLE users", CREATE_USERS)
        assert (states(place), marks(place), shown(place)) == ({}, 0, (True, BASE_VERSION))
        applier.rows(net(USERS, inserts=[BOB]))
        end(applier)
        assert place.read(USERS) == [BOB]

    @pytest.mark.parametrize("sql", ["RENAME TABLE users TO people", "ALTER TABLE users RENAME people, ADD KEY (name)"])
    def test_load_follows_a_renamed_table(self, place: Place, applier: Applier, sql: str) -> None:
        applier.rows(net(USERS, inserts=[ANN, BOB]))
        begin(applier)
        applier.rows(net(USERS, updates=[EVE]))
        applier.sql(sql)
        applier = again(place, applier)
        assert states(place) == {"shop.people": LoadContent.MARKED}
        applier.rows(net(PEOPLE, updates=[BOB], deletes=[(7, None, None)]))
        end(applier, of=PEOPLE)
        assert place.read(PEOPLE) == [BOB, EVE]

    def test_columns_may_change(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN, BOB]))
        begin(applier)
        applier.rows(net(USERS, updates=[EVE]))
        applier.sql("ALTER TABLE users ADD n INT DEFAULT 4, RENAME COLUMN id TO no")
        wider = layout("shop.users", ["no int", "name varchar(50)", "mail varchar(50)", "n int"], ["no"])
        applier.rows(net(wider, updates=[(*BOB, 5)]))
        end(applier)
        assert place.read(wider) == [(*BOB, 5), (*EVE, 4)]

    def test_load_has_to_begin_again_after_the_key_has_changed(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN, BOB]))
        begin(applier)
        applier.rows(net(USERS, updates=[EVE]))
        applier.sql("ALTER TABLE users DROP PRIMARY KEY, ADD PRIMARY KEY (id, name)")
        assert (states(place), marks(place)) == ({"shop.users": LoadContent.AWAITS_BEGIN}, 0)
        both = layout("shop.users", ["id int", "name varchar(50)", "mail varchar(50)"], ["id", "name"])
        applier.rows(net(both, updates=[(9, "dropped", None)]))
        with pytest.raises(TargetDiffers, match="beginning again"):
            end(applier)
        applier = again(place, applier)
        begin(applier, CREATE_USERS.replace("PRIMARY KEY", "").replace(", UNIQUE", ", PRIMARY KEY (id, name), UNIQUE"))
        applier.rows(net(both, updates=[ANN, (1, "other", None)]))
        end(applier)
        assert place.read(USERS) == [ANN, (1, "other", None)]

    def test_initial_load_ends_all_loads(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ANN]))
        begin(applier)
        applier.target.begin_snapshot()
        applier.commit(consistent=False)
        assert (states(place), marks(place), shown(place)) == ({}, 0, (False, BASE_VERSION))

    def test_other_tables_stay_strict(self, place: Place, applier: Applier) -> None:
        begin(applier)
        with pytest.raises(TargetDiffers):
            applier.rows(net(LOOSE, deletes=[TestLoadWithoutKey.A]))


def repair(applier: Applier, of: TableLayout, *rows: Any, gone: Sequence[int] = (), parts: int = 1) -> None:
    """Apply the repair of a table as compaction leaves it: rows as updates, deletes with the key alone."""
    stage_load(applier, Part.REPAIR, of=of, load="r1")
    nothing = [(key, *[None] * (len(of.columns) - 1)) for key in gone]
    for number in range(parts):
        last = number == parts - 1
        changes = [net(of, updates=rows[number::parts]), net(of, deletes=nothing if last else ())]
        applier.target.stage(changes, last=last)
    applier.commit(rows=len(rows) + len(gone))


class TestRepair:
    def people(self, place: Place, applier: Applier, *rows: Any) -> None:
        applier.sql("CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))")
        applier.rows(net(PEOPLE, inserts=[ANN, BOB, EVE, *rows]))

    def test_rows_that_are_missing_wrong_or_too_many_are_mended(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        place.run(f"DELETE FROM {called(place, PEOPLE)} WHERE id = 1")
        place.run(f"UPDATE {called(place, PEOPLE)} SET name = 'wrong' WHERE id = 2")
        place.run(f"INSERT INTO {called(place, PEOPLE)} VALUES (7, 'extra', 'x')")
        repair(applier, PEOPLE, ANN, BOB, gone=[7, 8])
        assert place.read(PEOPLE) == [ANN, BOB, EVE]
        assert shown(place) == (True, BASE_VERSION)
        assert (states(place), marks(place)) == ({}, 0)

    @pytest.mark.parametrize("parts", [1, 2])
    def test_swapped_unique_values_are_mended(self, place: Place, applier: Applier, parts: int) -> None:
        self.people(place, applier)
        unique(place, PEOPLE, "mail")
        name = called(place, PEOPLE)
        place.run(f"UPDATE {name} SET mail = '-' WHERE id = 1")
        place.run(f"UPDATE {name} SET mail = 'a' WHERE id = 2")
        place.run(f"UPDATE {name} SET mail = 'b' WHERE id = 1")
        place.run(f"DELETE FROM {name} WHERE id = 3")
        place.run(f"INSERT INTO {name} VALUES (9, 'thief', 'e')")
        repair(applier, PEOPLE, ANN, BOB, EVE, gone=[9], parts=parts)
        assert place.read(PEOPLE) == [ANN, BOB, EVE]

    def test_later_changes_of_the_table_are_strict(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        repair(applier, PEOPLE, ANN)
        place.run(f"DELETE FROM {called(place, PEOPLE)} WHERE id = 2")
        with pytest.raises(TargetDiffers):
            applier.rows(net(PEOPLE, updates=[BOB]))

    def test_other_tables_in_its_commit_are_strict(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        stage_load(applier, Part.REPAIR, of=PEOPLE)
        with pytest.raises(TargetDiffers):
            applier.rows(net(USERS, updates=[ANN]))

    def test_discarded_repair_leaves_its_table_strict(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        stage_load(applier, Part.REPAIR, of=PEOPLE)
        applier.target.stage([net(PEOPLE, updates=[(4, "new", "n")])], last=False)
        applier.target.discard()
        with pytest.raises(TargetDiffers):
            applier.rows(net(PEOPLE, updates=[(4, "new", "n")]))

    def test_excluded_table_stays_as_it_is(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        exclude(applier, "people")
        repair(applier, PEOPLE, (4, "new", "n"), gone=[1])
        assert place.read(PEOPLE) == [ANN, BOB, EVE]

    def test_table_that_is_being_loaded_takes_it_as_rows_of_its_load(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        begin(applier, "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))", of=PEOPLE)
        repair(applier, PEOPLE, (1, "ann", "new"), gone=[2])
        end(applier, of=PEOPLE)
        assert place.read(PEOPLE) == [(1, "ann", "new")]

    def test_repair_is_left_out_where_others_act_on_deletes(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        unique(place, PEOPLE, "mail")
        note_deletes(place, PEOPLE)
        repair(applier, PEOPLE, (1, "ann", "new"))
        assert place.read(PEOPLE) == [ANN, BOB, EVE]
        note_deletes(place, PEOPLE, on=False)
        repair(applier, PEOPLE, (1, "ann", "new"))
        assert place.read(PEOPLE) == [(1, "ann", "new"), BOB, EVE]

    def test_rows_are_replaced_in_place_without_a_unique_index(self, place: Place, applier: Applier) -> None:
        self.people(place, applier)
        note_deletes(place, PEOPLE)
        repair(applier, PEOPLE, (1, "ann", "new"), (4, "new", "n"), gone=[3])
        assert place.read(PEOPLE) == [(1, "ann", "new"), BOB, (4, "new", "n")]
        assert deleted(place) == [(3,)]


def random_load(random: Random, older: bool) -> tuple[list[dict[str, Any]], dict[int, str], int]:
    """A log with a table that is loaded while a stream changes it; its rows at the end, and where the load ends."""
    rows: dict[int, str] = {}
    records: list[dict[str, Any]] = []

    def add(changes: list[dict[str, Any]], **fields: Any) -> None:
        records.append(record(len(records), changes, last_barrier=barrier[0], **fields))

    def load(changes: list[dict[str, Any]], part: Part = Part.ROWS) -> None:
        shard = "shop" if part is Part.ROWS else UNKNOWN_SHARD
        records.append(load_record(len(records), changes, part=part, last_barrier=barrier[0], shard=shard))
        if part is not Part.ROWS:
            barrier[0] = len(records) - 1

    barrier = [-1]
    if older:
        # The target lacks what happens here: it has rows that the source has no longer, and others with other values.
        add([statement(CREATE_ORDERS)], kind="ddl", shard=UNKNOWN_SHARD)
        barrier[0] = 0
        add([made("insert", None, [key, "older"]) for key in range(0, 30, 2)])
    for key in range(0, 30, 3):
        rows[key] = "first"
    begun, chunks = False, list(range(0, 30, 5))
    while chunks or random.random() < 0.8:
        if not begun or (chunks and random.random() < 0.02):
            load([statement("CREATE DATABASE IF NOT EXISTS shop"), statement(CREATE_ORDERS)], Part.BEGIN)
            begun, chunks = True, list(range(0, 30, 5))
        if chunks and random.random() < 0.2:
            first = chunks[0]
            load([made("read", None, [key, rows[key]]) for key in range(first, first + 5) if key in rows])
            if random.random() < 0.8:  # else it comes again
                chunks.pop(0)
        add(random_changes(random, rows, 30, most=4, version=len(records)))
    load([], Part.END)
    last = len(records) - 1
    add([made("delete", [key, value], None) for key, value in sorted(rows.items())[:3]])
    return records, dict(sorted(rows.items())[3:]), last


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *long(*range(2, 6))])
def test_loaded_table_equals_the_source_after_crashes(place: Place, seed: int, older: bool) -> None:
    random = Random(seed)
    records, expected, ends = random_load(random, older)
    values, known = log(*records), history([0], len(records) - 1)
    done = 0
    while done < len(values):
        target = place.open(audit=True)
        rig = Rig(target, known)
        start = rig.core.position.offsets.get(0, 0)
        for _ in range(random.randint(1, 4)):
            if found := values[start : start + random.randint(1, 12)]:
                rig.accept(table(found, offset=start))
            start += len(found)
        done = max(done, start)
        seqno = rig.core.position.seqno
        target.close()
        assert shown(place)[0] is (seqno >= ends or not states(place))
    assert place.read(ORDERS) == sorted(expected.items())
    assert [seqno for seqno, _ in place.applied()] == list(range(len(records)))
    assert marks(place) == 0
