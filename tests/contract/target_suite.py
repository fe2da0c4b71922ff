"""The contract of every target (connector/targets/target.py); the `test_target_*` files run it on real databases.

A `Place` is a fresh database: it opens targets on it, and reads it through a session of its own, giving rows back
as the log has them.
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from connector import failpoints
from connector.errors import (
    ConfigError,
    ConnectorError,
    Fenced,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    Unsupported,
)
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import ANY, AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.bookkeeping import SCHEMA_VERSION
from connector.targets.signal_table import SignalTable
from connector.targets.target import TargetDatabase
from tests.support.net import Row, layout, net

USERS = layout("shop.users", ["id int", "name varchar(50)", "mail varchar(50)"], ["id"])
LOOSE = layout("shop.loose", ["a int", "b varchar(20)", "c double", "j json"])
CREATE_USERS = "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50), UNIQUE KEY (mail))"
CREATE_LOOSE = "CREATE TABLE loose (a INT, b VARCHAR(20), c DOUBLE, j JSON)"


KILLS = ("before_commit:4", "mid_stage:9", "after_commit:5")


class Place(Protocol):
    """A database for one test.

    Attributes:
        schemaless: whether a table's schema is a part of its name.
        kinds: the target's types for INT and SMALLINT.
        way_out: what the error of a column that the target computes says of it.
        lacks: types of MySQL that the target cannot have.
        indexes: whether tables have indexes: of their primary key, and of a unique key by which the log finds rows.
        computed: what follows GENERATED ALWAYS AS (…) in a statement that creates a column computed by the target.
        early: whether others may see the table of CREATE TABLE … SELECT before its rows.
        kills: points of `connector.failpoints` at which an applier of rows is killed, each with its passage.
    """

    schemaless: bool
    kinds: tuple[str, str]
    way_out: str
    lacks: frozenset[str]
    indexes: bool
    computed: str
    early: bool
    kills: tuple[str, ...]

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> TargetDatabase:
        """A target on it; closed when the test ends."""

    @property
    def options(self) -> dict[str, Any]:
        """The fields of `target` in the configuration of such a target."""

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> TargetDatabase:
        """A target as `thl undo` opens it, with one writer."""

    def read(self, table: TableLayout) -> list[Row] | None:
        """A table's rows as the log has them, sorted; None if there is no such table. From a session of its own."""

    def applied(self) -> list[tuple[int, int]]:
        """`thl_applied`: seqno and rows, in order."""

    def drop(self, table: TableLayout) -> None:
        """Drop a table in another session."""

    def run(self, sql: str) -> None:
        """Run a statement in another session."""

    def query(self, sql: str) -> list[Row]:
        """The rows that a query finds, in another session."""

    def indexed(self, table: TableLayout) -> list[str]:
        """The columns of each index of a table, with commas between, sorted."""

    def marks(self) -> int:
        """The number of tables of marks."""

    def note_deletes(self, name: str, body: str) -> None:
        """Create the trigger `by_user` on a table, whose name is quoted; its body is a statement for each deleted row,
        `old`."""

    def forget_deletes(self, name: str) -> None:
        """Drop it."""

    def signals(self) -> SignalTable:
        """The target's signal tables; the caller closes them."""

    def staging(self) -> int:
        """The number of tables that are neither the source's nor the bookkeeping's, once every target is closed."""


class Applier:
    """A claimed target and the next seqno."""

    def __init__(self, target: TargetDatabase) -> None:
        self.target = target
        self.position = target.claim("shop")

    def commit(self, *, rows: int = 0, consistent: bool = True) -> None:
        seqno = Seqno(self.position.seqno + 1)
        position = TargetPosition(
            service="shop",
            log_id=LogId("log"),
            seqno=seqno,
            epoch=Epoch(1),
            source_id="db1:3306",
            event_id=f"mysql-bin.000002:{seqno};1",
            gtid_set="3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5",
            offsets={0: 100 + seqno, 11: 3},
            consistent=consistent,
            commit_time=1_700_000_000_000_000 + seqno,
        )
        event = AppliedEvent(
            seqno=seqno,
            epoch=Epoch(1),
            event_id=position.event_id,
            commit_time=position.commit_time,
            rows=rows,
        )
        self.target.commit(position, [event])
        self.position = position

    def rows(self, *changes: NetChanges) -> None:
        self.target.stage(changes, last=True)
        self.commit(rows=sum(change.changes for change in changes))

    def sql(self, *statements: str, **options: str) -> None:
        self.stage_sql(*statements, **options)
        self.commit()

    def stage_sql(self, *statements: str, **options: str) -> None:
        """Give statements as one DDL event; default schema shop."""
        self.target.ddl(
            Ddl(
                seqno=Seqno(self.position.seqno + 1),
                statements=[Statement("shop", sql, options) for sql in statements],
                commit_time=1_700_000_000_123_456,
            )
        )


@pytest.fixture
def applier(place: Place) -> Applier:
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE)
    return made


class TestPosition:
    def test_claim_of_an_empty_target_is_before_everything(self, place: Place) -> None:
        assert place.open().claim("shop") == TargetPosition(service="shop")

    def test_claim_returns_the_last_commits_position(self, place: Place, applier: Applier) -> None:
        applier.commit(consistent=False)
        applier.target.close()
        assert place.open().claim("shop") == applier.position

    def test_a_target_keeps_the_random_name_that_its_first_claim_has_given_it(self, place: Place) -> None:
        names = []
        for service in ("shop", "shop", "other"):
            target = place.open()
            assert target.identity == ""
            target.claim(service)
            names.append(target.identity)
        assert len(names[0]) == 32
        assert names[0] == names[1] != names[2]

    def test_each_service_has_its_own_position(self, place: Place, applier: Applier) -> None:
        assert place.open().claim("other") == TargetPosition(service="other")
        applier.commit()  # not fenced by it


class TestSchemaVersion:
    def test_a_target_of_a_newer_version_is_refused_by_name(self, place: Place, applier: Applier) -> None:
        place.run(f"UPDATE {position_table(place)} SET schema_version = 99 WHERE service = 'shop'")
        with pytest.raises(ConfigError) as refused:
            place.open().claim("shop")
        assert "schema version is 99" in refused.value.message
        assert refused.value.where["known"] == SCHEMA_VERSION
        place.open().claim("other")
        applier.commit()  # the claim that was refused has changed nothing

    def test_a_target_of_an_earlier_version_is_claimed(self, place: Place, applier: Applier) -> None:
        place.run(f"ALTER TABLE {position_table(place)} DROP COLUMN schema_version")
        applier.target.close()
        assert place.open().claim("shop") == applier.position
        place.run(f"UPDATE {position_table(place)} SET schema_version = 99")
        with pytest.raises(ConfigError):
            place.open().claim("shop")


def position_table(place: Place) -> str:
    return "thl_position" if place.schemaless else "thl.thl_position"


class TestVisibility:
    def test_nothing_is_seen_before_the_commit(self, place: Place, applier: Applier) -> None:
        applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
        applier.target.stage([net(LOOSE, inserts=[(1, None, None, None)])], last=True)
        assert place.read(USERS) == []
        applier.commit()
        assert place.read(USERS) == [(1, "ann", None)]
        assert place.read(LOOSE) == [(1, None, None, None)]

    def test_discarded_rows_are_forgotten(self, place: Place, applier: Applier) -> None:
        applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
        applier.target.discard()
        applier.rows(net(USERS, inserts=[(2, "bob", None)]))
        assert place.read(USERS) == [(2, "bob", None)]

    def test_discarded_ddl_is_forgotten(self, place: Place, applier: Applier) -> None:
        applier.stage_sql("DROP TABLE users")
        applier.target.discard()
        applier.rows(net(USERS, inserts=[(2, "bob", None)]))
        assert place.read(USERS) == [(2, "bob", None)]

    def test_staged_rows_are_lost_on_close(self, place: Place, applier: Applier) -> None:
        applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
        applier.target.close()
        again = Applier(place.open())
        assert again.position == applier.position
        again.rows(net(USERS, inserts=[(1, "bob", None)]))
        assert place.read(USERS) == [(1, "bob", None)]
        again.target.close()
        assert place.staging() == 0

    def test_close_may_be_repeated(self, applier: Applier) -> None:
        applier.target.close()
        applier.target.close()


class TestRows:
    def test_inserts_updates_and_deletes_of_one_batch(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b"), (3, "cid", None)]))
        applier.rows(
            net(USERS, deletes=[(1, "ann", "a")], updates=[(2, None, "b")], inserts=[(4, "dan", "a")]),
            net(LOOSE, inserts=[(1, "x", 0.5, "[]")]),
        )
        assert place.read(USERS) == [(2, None, "b"), (3, "cid", None), (4, "dan", "a")]
        assert place.read(LOOSE) == [(1, "x", 0.5, "[]")]

    def test_keys_are_swapped_in_one_batch(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b")]))
        applier.rows(net(USERS, updates=[(1, "bob", "b"), (2, "ann", "a")]))
        applier.rows(net(USERS, deletes=[(1, "bob", "b")], inserts=[(3, "bob", "b")]))
        assert place.read(USERS) == [(2, "ann", "a"), (3, "bob", "b")]

    def test_unique_values_are_swapped_in_one_batch(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b")]))
        applier.rows(net(USERS, updates=[(1, "ann", "b"), (2, "bob", "a")]))
        assert place.read(USERS) == [(1, "ann", "b"), (2, "bob", "a")]

    def test_keys_are_compared_by_bytes(self, place: Place, applier: Applier) -> None:
        words = layout("shop.words", ["w varchar(10)", "n int"], ["w"])
        applier.sql("CREATE TABLE words (w VARCHAR(10) PRIMARY KEY, n INT)")
        applier.rows(net(words, inserts=[("a", 1), ("é", 2)]))
        applier.rows(net(words, deletes=[("a", 1)], inserts=[("A", 1), ("É", 3), ("a ", 4)]))
        assert place.read(words) == [("A", 1), ("a ", 4), ("É", 3), ("é", 2)]

    def test_key_columns_in_another_order_are_found(self, place: Place, applier: Applier) -> None:
        lines = layout("shop.lines", ["n int", "note text", "orders bigint"], ["orders", "n"])
        applier.sql("CREATE TABLE lines (n INT, note TEXT, orders BIGINT, PRIMARY KEY (orders, n))")
        applier.rows(net(lines, inserts=[(1, "x", 7), (2, "y", 7), (1, "z", 8)]))
        applier.rows(net(lines, updates=[(1, "zz", 8)], deletes=[(1, "x", 7)]))
        assert place.read(lines) == [(1, "zz", 8), (2, "y", 7)]

    def test_table_with_only_a_key_is_updated(self, place: Place, applier: Applier) -> None:
        only = layout("shop.only", ["id bigint"], ["id"])
        applier.sql("CREATE TABLE only (id BIGINT PRIMARY KEY)")
        applier.rows(net(only, inserts=[(2**63 - 1,), (-(2**63),)]))
        applier.rows(net(only, updates=[(2**63 - 1,)], deletes=[(-(2**63),)]))
        assert place.read(only) == [(2**63 - 1,)]

    def test_a_large_event_in_many_stages_is_seen_at_once(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(0, "old", None)]))
        for batch in range(20):
            rows = [(1 + batch * 500 + n, f"u{n}", None) for n in range(500)]
            applier.target.stage([net(USERS, inserts=rows)], last=False)
        # The same keys again, in later stages: order counts.
        applier.target.stage([net(USERS, updates=[(1, "again", "m")], deletes=[(0, "old", None)])], last=False)
        applier.target.stage([net(USERS, deletes=[(1, "again", "m")], inserts=[(0, "new", None)])], last=False)
        applier.target.stage([net(USERS, inserts=[(1, "last", None)])], last=True)
        assert place.read(USERS) == [(0, "old", None)]
        applier.commit(rows=10_004)
        found = place.read(USERS)
        assert found is not None
        assert len(found) == 10_001
        assert found[:3] == [(0, "new", None), (1, "last", None), (2, "u1", None)]
        applier.target.close()
        assert place.staging() == 0


class TestCounts:
    @pytest.mark.parametrize(
        "wrong",
        [
            net(USERS, deletes=[(9, None, None)]),
            net(USERS, updates=[(9, None, None)]),
            net(USERS, inserts=[(1, "ann", None)]),
            net(USERS, updates=[(1, "x", None), (9, "y", None)]),
            net(LOOSE, deletes=[(1, "x", 0.5, None)] * 3),
            net(LOOSE, deletes=[(1, "x", 0.5, "null")]),
        ],
        ids=["delete", "update", "insert", "one of two updates", "one copy too many", "NULL is not null"],
    )
    def test_difference_stops_and_nothing_is_committed(self, place: Place, applier: Applier, wrong: NetChanges) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", None)]), net(LOOSE, inserts=[(1, "x", 0.5, None)] * 2))
        with pytest.raises(TargetDiffers, match=wrong.layout.name.table):
            applier.rows(net(USERS, inserts=[(5, "new", None)]), wrong)
        applier.target.close()
        assert place.read(USERS) == [(1, "ann", None)]
        assert place.read(LOOSE) == [(1, "x", 0.5, None)] * 2
        assert place.open().claim("shop") == applier.position

    @pytest.mark.parametrize(
        ("wrong", "missing"),
        [
            (net(USERS, updates=[(1, "x", None), (9, "y", None), (8, "z", None)]), {8, 9}),
            (net(USERS, deletes=[(1, "ann", None), (9, None, None)]), {9}),
            (net(USERS, changed=[({"name": "x"}, (1,)), ({"name": "y"}, (7,))]), {7}),
            (net(USERS, moved=[({"id": 3}, (1,)), ({"id": 4}, (7,))]), {7}),
            (net(USERS, updates=[(n, "x", None) for n in range(2, 20)]), {*range(2, 20)} - {5}),
        ],
        ids=["updates", "deletes", "changed", "moved", "many"],
    )
    def test_rows_that_are_missing_are_named(self, applier: Applier, wrong: NetChanges, missing: set[int]) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        with pytest.raises(TargetDiffers) as raised:
            applier.rows(net(USERS, inserts=[(5, "of the same commit", None)]), wrong)
        named = str(raised.value.where["rows"]).split("; ")
        assert str(raised.value.where["table"]) == "shop.users"
        assert (len(set(named)), set(named) <= {f"id={key}" for key in missing}) == (min(5, len(missing)), True)

    @pytest.mark.parametrize(
        "other",
        [
            layout("shop.users", ["id int", "name varchar(50)"], ["id"]),
            layout("shop.users", ["id bigint", "name varchar(50)", "mail varchar(50)"], ["id"]),
            layout("shop.users", ["id int", "name varchar(50)", "post varchar(50)"], ["id"]),
            layout("shop.users", ["id int", "name varchar(50)", "mail varchar(50)"], ["name"]),
            layout("shop.unknown", ["id int"], ["id"]),
        ],
        ids=["fewer columns", "another type", "another name", "another key", "no such table"],
    )
    def test_layout_unlike_the_table_stops(self, applier: Applier, other: TableLayout) -> None:
        with pytest.raises(TargetDiffers):
            applier.rows(net(other, inserts=[(1,) * len(other.columns)]))

    def test_dropped_table_stops(self, place: Place, applier: Applier) -> None:
        place.drop(USERS)
        with pytest.raises(TargetDiffers, match="users"):
            applier.rows(net(LOOSE, inserts=[(1, None, None, None)]), net(USERS, inserts=[(1, "ann", None)]))
        applier.target.close()
        assert place.read(LOOSE) == []


class TestKeyless:
    def test_equal_rows_are_deleted_as_often_as_logged(self, place: Place, applier: Applier) -> None:
        twice: Row = (1, None, 0.1, '{"a": 1}')
        applier.rows(net(LOOSE, inserts=[twice] * 4 + [(1, "", 0.1, '{"a": 1}'), (None, None, None, None)]))
        applier.rows(net(LOOSE, deletes=[twice] * 3 + [(None, None, None, None)], inserts=[(2, "n", None, None)]))
        assert place.read(LOOSE) == [twice, (1, "", 0.1, '{"a": 1}'), (2, "n", None, None)]

    def test_rows_are_found_by_a_not_null_unique_key(self, place: Place, applier: Applier) -> None:
        applier.sql("CREATE TABLE told (a INT NOT NULL, b INT, UNIQUE KEY (a))")
        table = layout("shop.told", ["a int not null", "b int"], ["a"])
        applier.rows(net(table, inserts=[(1, 1), (2, 2), (3, 3)]))
        applier.rows(net(table, updates=[(1, 9)], deletes=[(2, 2)], changed=[({"b": None}, (3,))]))
        assert place.read(table) == [(1, 9), (3, None)]
        with pytest.raises(TargetDiffers) as stopped:
            applier.rows(net(layout("shop.told", ["a int", "b int"], ["a"]), inserts=[(4, 4)]))
        assert stopped.value.where["key"] == "a"

    def test_rows_found_by_a_unique_key_use_an_index(self, place: Place, applier: Applier) -> None:
        """A table without such an index gets one, after renames and changes of its key, too."""
        applier.sql("CREATE TABLE told (a INT, b VARCHAR(20) NOT NULL, c INT NOT NULL, UNIQUE KEY (c, b))")
        columns = ["a int", "b varchar(20) not null", "c int not null"]
        told = layout("shop.told", columns, ["c", "b"])
        applier.rows(net(told, inserts=[(1, "x", 1), (2, "X", 1), (3, "00e9", 3)]))
        assert place.indexed(told) == []
        applier.rows(net(told, updates=[(9, "x", 1)], moved=[({"b": "e"}, (3, "00e9"))]))
        applier.rows(net(told, deletes=[(2, "X", 1)]))
        assert place.indexed(told) == (["c,b"] if place.indexes else [])
        applier.sql("RENAME TABLE told TO old", "CREATE TABLE told (a INT, b VARCHAR(20) NOT NULL, c INT NOT NULL)")
        applier.target.close()
        again = Applier(place.open())
        old = layout("shop.old", columns, ["c", "b"])
        again.rows(net(old, updates=[(8, "x", 1)]))
        again.rows(net(told, inserts=[(1, "x", 1)]), net(told, updates=[(4, "x", 1)]))
        expected = ["c,b"] if place.indexes else []
        assert (place.indexed(old), place.indexed(told)) == (expected, expected)
        bare = layout("shop.old", columns)
        again.rows(net(bare, inserts=[(8, "x", 1)]))  # the key is gone, and so rows may be equal
        assert place.read(bare) == [(3, "e", 3), (8, "x", 1), (8, "x", 1)]

    def test_discarded_index_is_created_again(self, place: Place, applier: Applier) -> None:
        applier.sql("CREATE TABLE told (a INT NOT NULL, b INT, UNIQUE KEY (a))")
        told = layout("shop.told", ["a int not null", "b int"], ["a"])
        applier.rows(net(told, inserts=[(1, 1)]))
        applier.target.stage([net(told, updates=[(1, 2)])], last=False)
        applier.target.discard()
        applier.rows(net(told, updates=[(1, 3)]))
        assert (place.indexed(told), place.read(told)) == (["a"] if place.indexes else [], [(1, 3)])

    def test_zeros_of_either_sign_are_two_values(self, place: Place, applier: Applier) -> None:
        applier.rows(net(LOOSE, inserts=[(1, None, 0.0, None), (1, None, -0.0, None)]))
        applier.rows(net(LOOSE, deletes=[(1, None, -0.0, None)]))
        left = place.read(LOOSE)
        assert str(left) == str([(1, None, 0.0, None)])


class TestFencing:
    def test_older_applier_cannot_stage_or_commit(self, place: Place, applier: Applier) -> None:
        newer = Applier(place.open())
        with pytest.raises(Fenced):
            applier.rows(net(USERS, inserts=[(1, "old", None)]))
        applier.target.close()
        newer.rows(net(USERS, inserts=[(1, "new", None)]))
        assert place.read(USERS) == [(1, "new", None)]

    def test_older_applier_is_fenced_within_a_large_event(self, place: Place, applier: Applier) -> None:
        Applier(place.open())
        with pytest.raises(Fenced):
            applier.target.stage([net(USERS, inserts=[(1, "old", None)])], last=False)

    def test_older_applier_cannot_move_the_position(self, place: Place, applier: Applier) -> None:
        newer = Applier(place.open())
        with pytest.raises(Fenced):
            applier.commit()
        applier.target.close()
        assert Applier(place.open()).position == newer.position

    def test_older_applier_cannot_execute_ddl(self, place: Place, applier: Applier) -> None:
        Applier(place.open())
        with pytest.raises(Fenced):
            applier.sql("DROP TABLE users")
        assert place.read(USERS) == []

    def test_older_applier_cannot_begin_a_snapshot(self, place: Place, applier: Applier) -> None:
        Applier(place.open())
        with pytest.raises(Fenced):
            applier.target.begin_snapshot()
            applier.commit()
        assert place.read(USERS) == []

    def test_older_applier_cannot_reclaim_after_a_lost_session(self, place: Place, applier: Applier) -> None:
        newer = Applier(place.open())
        applier.target.close()
        with pytest.raises(Fenced):
            place.open().claim("shop", applier.target.token)
        newer.rows(net(USERS, inserts=[(1, "new", None)]))

    def test_applier_that_lost_its_session_reclaims(self, place: Place, applier: Applier) -> None:
        applier.target.close()
        again = place.open()
        assert again.claim("shop", applier.target.token) == applier.position
        assert again.token > applier.target.token

    @pytest.mark.parametrize("at", [(bookkeeping, "with_loads"), (failpoints, "point")], ids=["before", "after"])
    def test_an_applier_is_not_fenced_by_its_own_claim_that_failed_about_its_commit(
        self, place: Place, applier: Applier, monkeypatch: pytest.MonkeyPatch, at: tuple[Any, str]
    ) -> None:
        """It does not know whether that was committed, and so not its token."""
        before = applier.target.token
        applier.target.close()

        def lost(*_: object) -> None:
            raise TargetUnavailable("lost")

        failed = place.open()
        with monkeypatch.context() as patched, pytest.raises(TargetUnavailable, match="lost"):
            patched.setattr(*at, lost)
            failed.claim("shop", before, "its mark")
        failed.close()
        again = place.open()
        assert again.claim("shop", before, "its mark") == applier.position
        assert again.token == before + (1 if at[1] == "with_loads" else 2)
        again.close()
        for mark in ("another", ""):
            refused = place.open()
            with pytest.raises(Fenced):
                refused.claim("shop", before, mark)
            refused.close()

    def test_an_applier_is_fenced_by_a_later_claim_that_has_no_mark(self, place: Place, applier: Applier) -> None:
        """As that of `thl undo`, or of an earlier version."""
        applier.target.close()
        marked, unmarked = place.open(), place.open()
        marked.claim("shop", 0, "its mark")
        marked.close()
        unmarked.claim("shop")
        with pytest.raises(Fenced):
            place.open().claim("shop", marked.token, "its mark")

    def test_older_applier_with_staged_rows_cannot_commit(self, place: Place, applier: Applier) -> None:
        """The newer applier waits for the older one's transaction or fences it; they never both write."""
        applier.target.stage([net(USERS, inserts=[(1, "old", None)])], last=True)
        try:
            newer = Applier(place.open())
        except TargetUnavailable:
            applier.commit()
            assert place.read(USERS) == [(1, "old", None)]
            return
        with pytest.raises(Fenced):
            applier.commit()
        applier.target.close()
        newer.rows(net(USERS, inserts=[(1, "new", None)]))
        assert place.read(USERS) == [(1, "new", None)]


class TestSnapshot:
    def test_snapshot_start_drops_every_table_at_its_commit(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        applier.target.begin_snapshot()
        assert place.read(USERS) == [(1, "ann", None)]
        applier.commit(consistent=False)
        assert place.read(USERS) is None
        assert place.read(LOOSE) is None
        applier.sql("CREATE DATABASE IF NOT EXISTS shop", CREATE_USERS)
        applier.rows(net(USERS, inserts=[(2, "bob", None)]))
        assert place.read(USERS) == [(2, "bob", None)]

    def test_snapshot_start_and_its_tables_fit_one_commit(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        applier.target.begin_snapshot()
        applier.stage_sql(CREATE_USERS)
        applier.target.stage([net(USERS, inserts=[(2, "bob", None)])], last=True)
        applier.commit()
        assert place.read(USERS) == [(2, "bob", None)]
        assert place.read(LOOSE) is None

    def test_snapshot_start_keeps_tables_of_other_services(self, place: Place, applier: Applier) -> None:
        other = place.open()
        other.claim("other")
        other.begin_snapshot()
        other.commit(TargetPosition(service="other"), [])
        assert place.read(USERS) == []


class TestAudit:
    def test_skipped_events_have_a_row_each(self, place: Place) -> None:
        applier = Applier(place.open(audit=True))
        applier.sql(CREATE_USERS)
        applier.rows(net(USERS, inserts=[(1, "ann", None), (2, "bob", None)]))
        assert place.applied() == [(0, 0), (1, 2)]

    def test_an_event_applied_twice_stops(self, place: Place) -> None:
        applier = Applier(place.open(audit=True))
        applier.commit()
        applier.position = TargetPosition(service="shop")
        with pytest.raises(TargetDiffers):
            applier.commit()


class TestLeftOut:
    def event(self, seqno: int, *tables: TableName) -> LeftOut:
        return LeftOut(
            seqno=Seqno(seqno), epoch=Epoch(1), event_id="binlog.000001:7;1", by="me@here", reason="why", tables=tables
        )

    def test_mark_is_committed_and_removed_when_found_equal(self, place: Place, applier: Applier) -> None:
        first, second, some = TableName("shop", "users"), TableName("shop", "loose"), TableName("shop", ANY)
        with place.signals() as signals:
            assert signals.skipped("shop") == set()
            applier.target.leave_out(self.event(1, first, some))
            applier.commit()
            applier.target.leave_out(self.event(2, first, second))
            applier.commit()
            assert signals.skipped("shop") == {1, 2}
            assert [(one.schema, one.table, one.since) for one in signals.inconsistent("shop")] == [
                ("shop", "*", 1),
                ("shop", "loose", 2),
                ("shop", "users", 1),
            ]
            assert signals.inconsistent("shop")[0].reason == "event 1 was left out: why"
            assert signals.inconsistent("other") == []
            found = signals.found_equal("shop", {"shop.users", "shop.loose"}, 1, every=False)
            assert [one.table for one in found] == ["users"]
            assert [one.table for one in signals.found_equal("shop", {"shop.loose"}, 2, every=True)] == ["*", "loose"]
            assert signals.inconsistent("shop") == []
            assert signals.skipped("shop") == {1, 2}

    def test_discarded_skip_is_forgotten(self, place: Place, applier: Applier) -> None:
        applier.target.leave_out(self.event(1, TableName("shop", "users")))
        applier.target.discard()
        applier.commit()
        with place.signals() as signals:
            assert (signals.skipped("shop"), signals.inconsistent("shop")) == (set(), [])


class TestNames:
    def test_foreign_table_is_left_alone(self, place: Place, applier: Applier) -> None:
        """A table of another owner with the name of the source's table is kept."""
        other = Applier.__new__(Applier)
        other.target = place.open()
        other.position = other.target.claim("other")
        with pytest.raises((TargetDiffers, PreflightError)):
            other.sql(CREATE_USERS)
        other.target.close()
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        assert place.read(USERS) == [(1, "ann", None)]

    def test_names_with_quotes_dots_and_other_letters_are_applied(self, place: Place, applier: Applier) -> None:
        odd = layout('shop.o"d.d-ü', ['i"d int', "n'm varchar(9)", "select varchar(9)"], ['i"d'])
        applier.sql('CREATE TABLE `o"d.d-ü` (`i"d` INT PRIMARY KEY, `n\'m` VARCHAR(9), `select` VARCHAR(9))')
        applier.rows(net(odd, inserts=[(1, "a", "b"), (2, "c", "d")]))
        applier.rows(net(odd, updates=[(1, "x", "y")], deletes=[(2, "c", "d")]))
        assert place.read(odd) == [(1, "x", "y")]


def stops(applier: Applier, error: type[ConnectorError], *statements: str, **options: str) -> ConnectorError:
    """Give statements that must stop; the error."""
    with pytest.raises(error) as caught:
        applier.sql(*statements, **options)
    return caught.value


class TestStop:
    def test_refused_ddl_has_seqno_and_sql(self, applier: Applier) -> None:
        error = stops(applier, Unsupported, "ALTER TABLE users DROP PARTITION p1")
        assert error.where["seqno"] == 1
        assert error.where["sql"] == "ALTER TABLE users DROP PARTITION p1"
