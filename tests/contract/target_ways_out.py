"""The contract of every target for refused changes: DDL applied by hand, and excluded tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connector.applier.quarantine import Quarantine
from connector.clock import SystemClock
from connector.errors import ConnectorError, TargetDiffers, Unsupported
from connector.log.compact.net_changes import ANY, Ddl, LeftOut, once_more
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.target_schema import QUARANTINED, Excluded
from tests.contract.target_suite import USERS, Applier, Place, stops
from tests.support.fragments import change, record, statement
from tests.support.net import Row, layout, net
from tests.unit.applier.test_core import Rig, history, log, table

REFUSED = "ALTER TABLE users MODIFY name INT, ADD n SMALLINT AS (id + 1), DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"
AFTER = layout("shop.users", ["id int", "name int", "mail varchar(50)", "n smallint"], ["id", "n"])
PEOPLE = layout("shop.people", ["id int", "name varchar(50)", "mail varchar(50)"], ["id"])
SHOP_USERS = TableName("shop", "users")
ROW: Row = (1, "7", None)


def done(applier: Applier, sql: str, schema: str = "shop") -> tuple[TableName, ...]:
    """Record a statement as applied by hand, as the apply core does; return the tables that it marks."""
    seqno = Seqno(applier.position.seqno + 1)
    tables = applier.target.done_by_hand(
        Ddl(seqno=seqno, statements=[Statement(schema, sql, {})], commit_time=1_700_000_000_000_000)
    )
    applier.target.leave_out(
        LeftOut(seqno=seqno, epoch=Epoch(1), event_id="f:1;1", by="me@here", reason="why", tables=tables, by_hand=True)
    )
    applier.commit()
    return tables


def again(place: Place, applier: Applier) -> Applier:
    """Another applier, after an error."""
    applier.target.close()
    return Applier(place.open())


class TestByHand:
    def test_refused_statement_names_both_remedies(self, applier: Applier) -> None:
        error = stops(applier, Unsupported, REFUSED)
        assert "thl apply --done-seqno 1 " in error.hint
        assert "thl apply --exclude-table shop.users " in error.hint

    def test_table_continues_after_a_ddl_by_hand(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[ROW]))
        stops(applier, Unsupported, REFUSED)
        applier = again(place, applier)
        with pytest.raises(TargetDiffers) as raised:
            done(applier, REFUSED)
        assert str(raised.value.where["table"]) == "shop.users"
        assert "n " in raised.value.message
        assert ("primary key (id, n)" in raised.value.hint) is place.indexes
        applier = again(place, applier)
        place.drop(USERS)
        made, strict = ('"shop.users"', "STRICT") if place.schemaless else ("shop.users", "")
        whole, small = place.kinds
        columns = f"id {whole} NOT NULL, name {whole}, mail TEXT, n {small} NOT NULL, PRIMARY KEY (id, n)"
        place.run(f"CREATE TABLE {made} ({columns}) {strict}")
        place.run(f"INSERT INTO {made} VALUES (1, 7, NULL, 2)")
        assert done(applier, REFUSED) == (SHOP_USERS,)
        applier = again(place, applier)
        applier.rows(net(AFTER, inserts=[(2, 8, "m", 3)], updates=[(1, 9, None, 2)]))
        assert place.read(AFTER) == [(1, 9, None, 2), (2, 8, "m", 3)]
        with place.signals() as signals:
            assert signals.skipped("shop") == {2}
            (mark,) = signals.inconsistent("shop")
            assert (mark.schema, mark.table, mark.since) == ("shop", "users", 2)
            assert mark.reason == "event 2 was done by hand: why"

    def test_column_computed_by_the_target_is_refused(self, place: Place, applier: Applier) -> None:
        made, strict = ('"shop.users"', "STRICT") if place.schemaless else ("shop.users", "")
        whole, small = place.kinds
        place.drop(USERS)
        place.run(
            f"CREATE TABLE {made} (id {whole} NOT NULL, name {whole}, mail TEXT, "
            f"n {small} GENERATED ALWAYS AS (id + 1) {place.computed}, PRIMARY KEY (id)) {strict}"
        )
        with pytest.raises(TargetDiffers) as caught:
            done(applier, "ALTER TABLE users MODIFY name INT, ADD n SMALLINT AS (id + 1)")
        assert place.way_out in caught.value.hint

    @pytest.mark.parametrize(
        ("sql", "ours"),
        [
            ("ALTER TABLE users DROP PARTITION p1", (SHOP_USERS,)),
            ("TRUNCATE users", (SHOP_USERS,)),
            ("ALTER TABLE users EXCHANGE PARTITION p WITH TABLE loose", (TableName("shop", "loose"), SHOP_USERS)),
            ("ALTER NONSENSE", (TableName("shop", ANY),)),
            ("CREATE USER u", ()),
        ],
    )
    def test_ddl_by_hand_without_column_changes_is_recorded(
        self, applier: Applier, sql: str, ours: tuple[TableName, ...]
    ) -> None:
        assert done(applier, sql) == ours
        applier.rows(net(USERS, inserts=[ROW]))

    def test_table_dropped_or_renamed_by_hand_is_checked(self, place: Place, applier: Applier) -> None:
        with pytest.raises(TargetDiffers) as still_there:
            done(applier, "DROP TABLE loose")
        assert (str(still_there.value.where["table"]), still_there.value.hint) == ("shop.loose", "")
        applier = again(place, applier)
        place.drop(layout("shop.loose", ["a int"]))
        assert done(applier, "DROP TABLE loose") == ()
        with pytest.raises(TargetDiffers) as not_renamed:
            done(applier, "RENAME TABLE users TO people")
        assert str(not_renamed.value.where["table"]) in ("shop.people", "shop.users")
        applier = again(place, applier)
        old, new = ('"shop.users"', '"shop.people"') if place.schemaless else ("shop.users", "people")
        place.run(f"ALTER TABLE {old} RENAME TO {new}")
        assert done(applier, "RENAME TABLE users TO people") == (TableName("shop", "people"),)
        applier.rows(
            net(layout("shop.people", ["id int", "name varchar(50)", "mail varchar(50)"], ["id"]), inserts=[ROW])
        )

    def test_discarded_event_by_hand_is_not_recorded(self, place: Place, applier: Applier) -> None:
        place.drop(USERS)
        applier.target.done_by_hand(
            Ddl(seqno=Seqno(1), statements=[Statement("shop", "DROP TABLE users")], commit_time=0)
        )
        applier.target.discard()
        assert SHOP_USERS in applier.target.target_schema


def exclude(applier: Applier, *names: str, reason: str = "why") -> None:
    """Exclude tables as `connector.applier.excluded_tables` does."""
    entry = Excluded(since=Seqno(applier.position.seqno + 1), at=1, by="me@here", reason=reason)
    applier.target.exclude({TableName("shop", name): entry for name in names})
    applier.target.commit(applier.position, [])


def counted(place: Place) -> dict[str, int]:
    with place.signals() as signals:
        return {str(name): entry.changes for name, entry in signals.excluded("shop").items()}


class TestWithout:
    def test_excluded_rows_are_counted_and_not_applied(self, place: Place, applier: Applier) -> None:
        other = layout("shop.other", ["id int"], ["id"])
        applier.sql("CREATE TABLE other (id INT PRIMARY KEY)")
        applier.rows(net(USERS, inserts=[ROW]))
        exclude(applier, "users")
        applier.rows(net(USERS, inserts=[(2, "b", None)], deletes=[(9, "not there", None)]), net(other, inserts=[(1,)]))
        applier = again(place, applier)
        applier.rows(net(USERS, updates=[(3, "not there", None)]), net(other, inserts=[(2,)]))
        assert place.read(USERS) == [ROW]
        assert place.read(other) == [(1,), (2,)]
        assert counted(place) == {"shop.users": 3}
        with place.signals() as signals:
            entry = signals.excluded("shop")[SHOP_USERS]
            assert (entry.since, entry.by, entry.reason) == (3, "me@here", "why")

    def test_second_exclusion_keeps_the_first_record(self, place: Place, applier: Applier) -> None:
        exclude(applier, "users")
        applier.rows(net(USERS, inserts=[ROW]))
        exclude(applier, "users")
        assert counted(place) == {"shop.users": 1}

    def test_discarded_changes_of_excluded_tables_are_not_counted(self, place: Place, applier: Applier) -> None:
        exclude(applier, "users")
        applier.target.stage([net(USERS, inserts=[ROW])], last=False)
        applier.target.discard()
        applier.commit()
        assert counted(place) == {"shop.users": 0}

    def test_replayed_changes_of_excluded_tables_are_not_counted_again(self, place: Place, applier: Applier) -> None:
        exclude(applier, "users")
        applier.rows(net(USERS, inserts=[ROW]))
        applier.rows(once_more(net(USERS, inserts=[ROW])))
        assert (place.read(USERS), counted(place)) == ([], {"shop.users": 1})

    @pytest.mark.parametrize(
        "sql",
        [
            REFUSED,
            "ALTER TABLE users NONSENSE",
            "TRUNCATE TABLE users",
            "DROP INDEX `PRIMARY` ON users",
            "CREATE TABLE users (what IS THAT)",
        ],
    )
    def test_ddl_of_an_excluded_table_is_ignored(self, place: Place, applier: Applier, sql: str) -> None:
        applier.rows(net(USERS, inserts=[ROW]))
        exclude(applier, "users")
        applier.sql(sql)
        applier.rows(net(AFTER, inserts=[(1, 1, None, 1)]))
        assert place.read(USERS) == [ROW]

    def test_table_that_cannot_be_created_is_excluded(self, place: Place, applier: Applier) -> None:
        sql = "CREATE TABLE odd (a INT, b NONSENSE)"
        odd = layout("shop.odd", ["a int", "b int"])
        stops(applier, Unsupported, sql)
        applier = again(place, applier)
        exclude(applier, "odd")
        applier.sql(sql)
        applier.rows(net(odd, inserts=[(1, 1)]))
        assert (place.read(odd), counted(place)) == (None, {"shop.odd": 1})
        stops(applier, Unsupported, "CREATE TABLE like_it LIKE odd")

    @pytest.mark.parametrize("sql", ["RENAME TABLE users TO people", "ALTER TABLE users ADD x NONSENSE, RENAME people"])
    def test_excluded_table_is_followed_when_renamed(self, place: Place, applier: Applier, sql: str) -> None:
        applier.rows(net(USERS, inserts=[ROW]))
        exclude(applier, "users")
        applier.sql(sql, "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))")
        applier.rows(net(PEOPLE, inserts=[(2, None, None)]), net(USERS, inserts=[(5, None, None)]))
        applier = again(place, applier)
        applier.rows(net(PEOPLE, inserts=[(3, None, None)]))
        assert place.read(PEOPLE) == [ROW]
        assert place.read(USERS) == [(5, None, None)]
        assert counted(place) == {"shop.people": 2}

    @pytest.mark.parametrize("dropped", [False, True], ids=["is there", "was dropped by hand"])
    @pytest.mark.parametrize("sql", ["DROP TABLE users", "DROP DATABASE shop", ""], ids=["table", "database", "load"])
    def test_dropped_or_loaded_table_is_included_again(
        self, place: Place, applier: Applier, sql: str, dropped: bool
    ) -> None:
        exclude(applier, "users")
        if dropped:
            place.drop(USERS)
        if sql:
            applier.sql(sql)
        else:
            applier.rows(net(USERS, inserts=[ROW]))
            applier.target.begin_snapshot()
            applier.commit()
        applier = again(place, applier)
        assert counted(place) == {}
        applier.sql("CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))")
        applier.rows(net(USERS, inserts=[ROW]))
        assert place.read(USERS) == [ROW]

    def test_excluded_table_dropped_by_hand_is_renamed(self, place: Place, applier: Applier) -> None:
        exclude(applier, "users")
        place.drop(USERS)
        applier.sql("RENAME TABLE users TO people")
        assert counted(place) == {"shop.people": 0}

    def test_table_excluded_before_a_load_is_not_loaded(self, place: Place) -> None:
        applier = Applier(place.open())
        exclude(applier, "users")
        applier.target.begin_snapshot()
        applier.commit(consistent=False)
        applier.sql("CREATE DATABASE shop", "CREATE TABLE users (what IS THAT)")
        applier.rows(net(USERS, inserts=[ROW]))
        assert (place.read(USERS), counted(place)) == (None, {"shop.users": 1})

    def test_renamed_excluded_table_keeps_its_count(self, place: Place, applier: Applier) -> None:
        exclude(applier, "users")
        applier.rows(net(USERS, inserts=[ROW]))
        applier.sql("RENAME TABLE users TO people")
        applier.rows(net(PEOPLE, inserts=[ROW, (2, None, None)]))
        applier.sql("RENAME TABLE people TO users")
        assert counted(place) == {"shop.users": 3}

    def test_excluded_tables_that_swap_names_keep_their_records(self, place: Place, applier: Applier) -> None:
        applier.sql("CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50))")
        exclude(applier, "users")
        applier.rows(net(USERS, inserts=[ROW]))
        exclude(applier, "people")
        applier.rows(net(USERS, inserts=[(2, None, None)]), net(PEOPLE, inserts=[ROW]))
        with place.signals() as signals:
            before = signals.excluded("shop")
        applier.stage_sql("RENAME TABLE users TO other, people TO users, other TO people")
        applier.target.stage([net(USERS, inserts=[(3, None, None)])], last=True)
        applier.commit()
        with place.signals() as signals:
            after = signals.excluded("shop")
        assert after == {PEOPLE.name: before[SHOP_USERS], SHOP_USERS: replace(before[PEOPLE.name], changes=2)}
        assert before[SHOP_USERS].since != before[PEOPLE.name].since


TWO = ["id int", "v int"]
GOOD = layout("shop.good", TWO, ["id"])
POOR = layout("shop.poor", TWO, ["id"])
POORER = layout("shop.poorer", TWO, ["id"])
CREATED = ("CREATE DATABASE shop", *(f"CREATE TABLE {one} (id INT PRIMARY KEY, v INT)" for one in ("good", "poor")))


def ddl(seqno: int, *sql: str, after: int = -1) -> dict[str, Any]:
    return record(seqno, [statement(one) for one in sql], kind="ddl", shard="#UNKNOWN", last_barrier=after)


def inserted(number: int, *tables: str) -> list[dict[str, Any]]:
    return [change("insert", [(None, [number, number])], table=one) for one in tables]


def applied(place: Place, records: list[dict[str, Any]], *, on: bool = True) -> int:
    """Apply a log from the target's position on, as `connector.applier.applier` does; return the attempts."""
    quarantine = Quarantine(SystemClock(), "quarantine" if on else "stop")
    attempts = 0
    while True:
        attempts += 1
        target = place.open(audit=True)
        rig = Rig(target, history([0], len(records) - 1), quarantine=quarantine)
        quarantine.begin(target, rig.core.position)
        try:
            begin = rig.core.position.offsets.get(0, 0)
            rig.accept(table(log(*records)[begin:], offset=begin))
        except ConnectorError as error:
            if not quarantine.accepts("shop", rig.core.refused, error):
                raise
        else:
            return attempts
        finally:
            target.close()


def excluded_since(place: Place) -> dict[str, tuple[int, int]]:
    with place.signals() as signals:
        found = signals.excluded("shop")
    assert all(entry.reason.startswith(QUARANTINED) for entry in found.values())
    return {str(name): (entry.since, entry.changes) for name, entry in found.items()}


class TestQuarantine:
    """A batch of 400 events, of which the target refuses one table from some event on."""

    def events(self, bad: int, refused: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = [ddl(0, *CREATED)]
        for seqno in range(1, 401):
            changes = refused if seqno == bad else inserted(seqno, "poor")
            found.append(record(seqno, inserted(seqno, "good") + changes, last_barrier=0))
        return found

    @pytest.mark.parametrize("bad", [1, 199, 400])
    @pytest.mark.parametrize(
        "refused",
        [
            change("update", [([7000, 0], [7000, 1])], table="poor"),
            change("insert", [(None, [7000, 1 << 70])], table="poor"),
            change("insert", [(None, [0, 0])], table="poor"),
            change("delete", [([7000, 0], None)], table="poor"),
        ],
        ids=["missing row", "value", "row exists", "deleted row is missing"],
    )
    def test_refused_table_stays_as_it_was_and_others_go_on(
        self, place: Place, bad: int, refused: dict[str, Any]
    ) -> None:
        records = self.events(bad, [refused])
        applied(place, records[:1])
        Applier(place.open()).target.close()
        name = '"shop.poor"' if place.schemaless else "shop.poor"
        place.run(f"INSERT INTO {name} VALUES (0, 5)")
        assert applied(place, records) > 1
        every = [(n, n) for n in range(1, 401)]
        assert place.read(GOOD) == every
        assert place.read(POOR) == [(0, 5), *every[: bad - 1]]
        assert excluded_since(place) == {"shop.poor": (bad, 401 - bad)}
        assert [seqno for seqno, _ in place.applied()] == list(range(401))

    def test_refused_table_stops_the_applier_by_default(self, place: Place) -> None:
        missing = change("update", [([7000, 0], [7000, 1])], table="poor")
        with pytest.raises(TargetDiffers):
            applied(place, self.events(200, [missing]), on=False)
        assert excluded_since(place) == {}

    def test_two_tables_of_one_event_are_both_quarantined(self, place: Place) -> None:
        records = self.events(100, [])
        records[0] = ddl(0, *CREATED, "CREATE TABLE poorer (id INT PRIMARY KEY, v INT)")
        missing = [change("update", [([7000, 0], [7000, 1])], table=one) for one in ("poor", "poorer")]
        records[100] = record(100, inserted(100, "good") + missing, last_barrier=0)
        applied(place, records)
        assert place.read(GOOD) == [(n, n) for n in range(1, 401)]
        assert place.read(POORER) == []
        assert excluded_since(place) == {"shop.poor": (100, 301), "shop.poorer": (100, 1)}

    def test_table_of_a_refused_ddl_is_quarantined_until_it_is_dropped(self, place: Place) -> None:
        records = [
            ddl(0, *CREATED),
            *(record(seqno, inserted(seqno, "good", "poor"), last_barrier=0) for seqno in range(1, 9)),
            ddl(9, "ALTER TABLE poor ADD n SMALLINT AS (id + 1)", after=0),
            record(10, inserted(10, "good", "poor"), last_barrier=9),
            ddl(11, "RENAME TABLE poor TO poorer", after=9),
            record(12, inserted(12, "good", "poorer"), last_barrier=11),
        ]
        applied(place, records)
        assert place.read(POOR) is None
        assert place.read(POORER) == [(n, n) for n in range(1, 9)]
        assert excluded_since(place) == {"shop.poorer": (9, 2)}
        records += [
            ddl(13, "DROP TABLE poorer", "CREATE TABLE poor (id INT PRIMARY KEY, v INT)", after=11),
            record(14, inserted(14, "good", "poor"), last_barrier=13),
        ]
        assert applied(place, records) == 1
        assert excluded_since(place) == {}
        assert (place.read(POORER), place.read(POOR)) == (None, [(14, 14)])
        assert place.read(GOOD) == [(n, n) for n in (*range(1, 9), 10, 12, 14)]

    def test_ddl_of_no_table_stops(self, place: Place) -> None:
        with pytest.raises(Unsupported):
            applied(place, [ddl(0, *CREATED), ddl(1, "CREATE OR REPLACE DATABASE shop", after=0)])
        assert excluded_since(place) == {}


class TestStatements:
    def test_change_that_was_logged_as_a_statement_is_refused(self, place: Place) -> None:
        applier = Applier(place.open())
        with pytest.raises(Unsupported, match=r"logged as a statement, which a .* target does not execute") as caught:
            applier.target.execute(Statement("shop", "DELETE FROM users", {}), Seqno(0))
        assert caught.value.where["sql"] == "DELETE FROM users"
        applier.target.close()
