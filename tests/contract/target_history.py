"""The contract of every target for histories (`target.history`); the `test_target_*` files run it."""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest

from connector.applier.undo import compact_inverse
from connector.errors import ConfigError, TargetDiffers, Unsupported
from connector.log.compact.compact import Compactor
from connector.log.compact.history import history_layout, history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import Excluded
from tests.contract.target_again import taken_back
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, USERS, Applier, Place
from tests.contract.target_transactions import (  # noqa: F401 (the fixture `staged`)
    ALL,
    BARE,
    KEYED,
    TABLES,
    histories,
    metadata,
    one_table,
    staged,
    undone,
)
from tests.contract.target_ways_out import done, exclude
from tests.support import history_applier, killed
from tests.support.fragments import change, column, load_record, record, statement
from tests.support.history_applier import EVENTS, WANTED, random_log
from tests.support.long import long
from tests.support.net import Row, layout, net
from tests.unit.applier.test_core import Rig, history, log, table

SHOP = history_tables(["shop"])
HISTORY = history_layout(USERS.name)
EXCLUDED = Excluded(since=Seqno(0), at=1, by="me@here", reason="why")
NAMED = [column("id"), *(column(name, "varchar(50)") | {"charset": "utf8mb4"} for name in ("name", "mail"))]

History = list[Row]
"""Rows of a history, their images as Python objects."""


class Segmented(Rig):
    """A core whose messages go through a task."""

    tasks = True


def read(place: Place, name: TableName) -> History | None:
    found = place.read(history_layout(name))
    return None if found is None else sorted(map(parsed, found), key=lambda row: row[:2])  # type: ignore[arg-type]


def parsed(row: Row) -> Row:
    images = (None if image is None else json.loads(str(image)) for image in row[3:5])
    return (*row[:3], *images, *row[5:])


def expected(fragments: Iterable[dict[str, Any]], upto: int) -> dict[TableName, History]:
    """What the histories have after an event, by the records of the log."""
    found: dict[TableName, History] = defaultdict(list)
    position = 0
    for one in fragments:
        if one["seqno"] > upto:
            break
        position = 0 if one["fragno"] == 0 else position
        time = metadata(one["seqno"])[2]
        for each in one["changes"]:
            if "sql" in each:
                name = TableName(*each["sql"].split()[2].split("."))
                found[name].append((one["seqno"], -1, "statement", None, None, each["sql"], time))
                continue
            for row in each["rows"]:
                images = (
                    image(each, row["before"], each["before_present"]),
                    image(each, row["after"], each["after_present"]),
                )
                name = TableName(each["schema"], each["table"])
                found[name].append((one["seqno"], position, each["action"], *images, None, time))
                position += 1
    return found


def image(changed: dict[str, Any], values: list[Any] | None, present: bytes) -> Any:
    names = [each["name"] for each in changed["columns"]]
    bits = int.from_bytes(present, "little") if present else -1
    return (
        None
        if values is None
        else dict(zip((name for index, name in enumerate(names) if bits >> index & 1), values, strict=True))
    )


class Log:
    """Events, applied one by one to a target with histories of all tables of `shop`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.records: list[dict[str, Any]] = []
        self.barrier = -1
        self.rig = Rig(place.open(history=SHOP), history([0], 99), history=SHOP)
        self.rig.accept(table(log()))

    def add(self, made: dict[str, Any]) -> None:
        self.records.append(made)
        if made["shard"] == UNKNOWN_SHARD:
            self.barrier = made["seqno"]
        offset = len(self.records)
        self.rig.accept(table(log(*self.records)[offset:], offset=offset))

    def sql(self, *statements: str) -> None:
        seqno = len(self.records)
        made = [statement(sql) for sql in statements]
        self.add(record(seqno, made, kind="ddl", shard=UNKNOWN_SHARD, last_barrier=self.barrier))

    def rows(
        self, action: str, *images: tuple[Any, Any], name: str = "users", columns: Any = NAMED, key: Any = (0,)
    ) -> None:
        made = change(action, images, table=name, key=key) | {"columns": columns}
        self.add(record(len(self.records), [made], last_barrier=self.barrier))

    def load(self, part: Part, *changes: dict[str, Any], name: str = "users") -> None:
        shard = "shop" if part is Part.ROWS else UNKNOWN_SHARD
        self.add(load_record(len(self.records), changes, part=part, table=name, shard=shard, last_barrier=self.barrier))

    def load_of_history(self, part: Part, *changes: dict[str, Any]) -> None:
        """A part of a load of a table of the source that has the name of a history."""
        told = LoadEvent("l1", part, HISTORY.name).metadata()
        fields = {"kind": "load", "gtid": None, "metadata": told, "shard": UNKNOWN_SHARD}
        self.add(record(len(self.records), changes, last_barrier=self.barrier, **fields))

    def continue_with(self, target: TargetDatabase) -> None:
        """Go on with another target, at its position."""
        self.rig = Rig(target, history([0], 99), history=SHOP)
        if (at := self.rig.core.position.offsets[0]) <= len(self.records):
            self.rig.accept(table(log(*self.records)[at:], offset=at))

    def history(self, name: str = "users") -> list[tuple[Any, ...]]:
        """Action, rows and statement of each row."""
        found = read(self.place, TableName("shop", name))
        assert found is not None
        return [tuple(row[2:6]) for row in found]


@pytest.mark.parametrize(("rig", "columns"), [(Rig, None), (Segmented, ALL), *long((Rig, ALL), (Segmented, None))])
def test_history_has_each_change_once_and_at_once_with_its_table(
    place: Place,
    columns: MetadataColumns | None,
    rig: type[Rig],
    staged: int,  # noqa: F811
) -> None:
    random = Random(f"{columns is None} {staged}")
    events = 50
    fragments = [one for made, _ in histories(random, events) for one in made]
    values, known = log(*fragments), history([0], events - 1)
    target, at, reopened = place.open(columns=columns, history=SHOP), 0, 0
    applying = rig(target, known, columns=columns, history=SHOP)
    while applying.core.position.seqno < events - 1:
        step = random.choice((1, 2, 5, 9))
        applying.accept(table(values[at : at + step], offset=at))
        at += step
        if (seqno := applying.core.position.seqno) == NO_SEQNO:
            continue
        if random.random() < 0.3:
            target.close()  # with staged rows
            reopened += 1
            target = place.open(columns=columns, history=SHOP)
            applying = rig(target, known, columns=columns, history=SHOP)
            at = applying.core.position.offsets[0]
        wanted = expected(fragments, seqno)
        for each in TABLES:
            assert read(place, each.name) == wanted[each.name]
    assert reopened
    assert {row[2] for each in TABLES for row in wanted[each.name]} == {"statement", "insert", "update", "delete"}


def test_history_of_an_applier_killed_again_and_again_has_each_change_once(place: Place) -> None:
    given = json.dumps(place.options)
    for point in place.kills:
        ended = killed.run(history_applier.main, given, crash=f"target.{point}")
        assert ended == -signal.SIGKILL, f"{point}: {ended}"
    assert killed.run(history_applier.main, given) == 0
    wanted = expected(random_log(), EVENTS)
    names = [TableName(*name.split(".")) for name in WANTED]
    assert {name: read(place, name) for name in names} == {name: wanted[name] for name in names}
    assert [seqno for seqno, _ in place.applied()] == list(range(EVENTS))


class TestHistoryGoingBack:
    def test_rewind_takes_the_rows_of_later_events_out_and_the_replay_writes_them_again(self, place: Place) -> None:
        values, starts, _ = one_table(KEYED, Random(7), 50)
        known = history([0], 49)
        target = place.open(history=SHOP)
        Rig(target, known, history=SHOP).accept(table(values))
        whole = read(place, KEYED.name)
        assert whole is not None
        target.commit(taken_back(target.claim("shop"), 20, starts[20]), [])
        assert read(place, KEYED.name) == [row for row in whole if int(str(row[0])) < 20]
        rig = Rig(target, known, history=SHOP)
        for at in range(starts[20], len(values), 4):
            rig.accept(table(values[at : at + 4], offset=at))
        assert rig.core.position.consistent
        assert read(place, KEYED.name) == whole

    @pytest.mark.parametrize("each", [KEYED, BARE], ids=["key", "no key"])
    def test_undo_takes_the_rows_of_undone_events_out_and_adds_none(self, place: Place, each: Any) -> None:
        values, starts, _ = one_table(each, Random(8), 50)
        target = place.open(history=SHOP)
        Rig(target, history([0], 49), history=SHOP).accept(table(values))
        whole = read(place, each.name)
        assert whole is not None
        target.close()
        back = place.open_for_undo()
        at = back.claim("shop")
        collapse = Compactor("thl.shop", known=False)
        for seqno in range(at.seqno, 30, -1):
            compact_inverse(collapse, "thl.shop", values[starts[seqno] : starts[seqno] + 1])
        back.stage(collapse.drain(), last=True)
        back.commit(replace(at, seqno=Seqno(30), offsets={0: starts[31]}), [])
        assert read(place, each.name) == [row for row in whole if int(str(row[0])) <= 30]
        back.close()
        rig = Rig(place.open(history=SHOP), history([0], 49), history=SHOP)
        rig.accept(table(values[starts[31] :], offset=starts[31]))
        assert read(place, each.name) == whole

    def test_rewind_leaves_the_history_of_an_excluded_table_which_is_not_replayed(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        for number in range(5):
            made.rows("insert", (None, [number, None, None]))
        whole = read(place, USERS.name)
        made.rig.core._target.close()
        applier = Applier(place.open(history=SHOP))
        exclude(applier, "users")
        applier.target.commit(taken_back(applier.target.claim("shop"), 4, 5), [])
        assert read(place, USERS.name) == whole
        made.continue_with(applier.target)
        assert made.rig.core.position.consistent
        assert read(place, USERS.name) == whole


class TestHistoryDdl:
    def test_statements_are_rows_and_images_have_the_columns_of_their_time(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        alter = "ALTER TABLE users CHANGE name called VARCHAR(60), DROP COLUMN mail, ADD COLUMN n INT DEFAULT 5"
        made.sql(alter)
        columns = [column("id"), column("called", "varchar(60)") | {"charset": "utf8mb4"}, column("n")]
        made.rows("update", ([1, "ann", 5], [1, "eve", 6]), columns=columns)
        made.sql("TRUNCATE TABLE users")
        assert made.history() == [
            ("statement", None, None, CREATE_USERS),
            ("insert", None, {"id": 1, "name": "ann", "mail": None}, None),
            ("statement", None, None, alter),
            ("update", {"id": 1, "called": "ann", "n": 5}, {"id": 1, "called": "eve", "n": 6}, None),
            ("statement", None, None, "TRUNCATE TABLE users"),
        ]

    def test_history_belongs_to_the_name_and_outlives_the_table(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        made.sql("RENAME TABLE users TO people")
        made.rows("delete", ([1, "ann", None], None), name="people")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [2, "bob", None]))
        made.sql("DROP TABLE users")
        made.sql(CREATE_USERS)
        made.sql("DROP DATABASE shop")
        assert place.read(USERS) is None
        renamed = ("statement", None, None, "RENAME TABLE users TO people")
        dropped = ("statement", None, None, "DROP DATABASE shop")
        create = ("statement", None, None, CREATE_USERS)
        assert made.history() == [
            create,
            ("insert", None, {"id": 1, "name": "ann", "mail": None}, None),
            renamed,
            create,
            ("insert", None, {"id": 2, "name": "bob", "mail": None}, None),
            ("statement", None, None, "DROP TABLE users"),
            create,
            dropped,
        ]
        gone = ("delete", {"id": 1, "name": "ann", "mail": None}, None, None)
        assert made.history("people") == [renamed, gone, dropped]
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [3, "cid", None]))
        assert made.history()[-2:] == [create, ("insert", None, {"id": 3, "name": "cid", "mail": None}, None)]

    def test_statement_without_effect_on_a_table_is_no_row_of_its_history(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.sql(CREATE_LOOSE)
        made.sql("CREATE VIEW v AS SELECT 1")
        assert made.history() == [("statement", None, None, CREATE_USERS)]

    def test_statement_by_hand_is_a_row_and_its_new_table_has_a_history(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        done(applier, "TRUNCATE users")
        found = read(place, USERS.name)
        assert found is not None
        assert [row[:6] for row in found] == [
            (0, -1, "statement", None, None, CREATE_USERS),
            (1, -1, "statement", None, None, "TRUNCATE users"),
        ]
        whole, _ = place.kinds
        name, strict = ('"shop.made"', "STRICT") if place.schemaless else ("shop.made", "")
        place.run(f"CREATE TABLE {name} (id {whole} NOT NULL, PRIMARY KEY (id)) {strict}")
        done(applier, "CREATE TABLE made (id INT PRIMARY KEY)")
        assert read(place, TableName("shop", "made")) == [
            (2, -1, "statement", None, None, "CREATE TABLE made (id INT PRIMARY KEY)", "2023-11-14 22:13:20.000000")
        ]

    def test_table_dropped_or_renamed_by_hand_has_the_statement_under_all_its_names(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE)
        place.drop(layout("shop.loose", ["a int"]))
        done(applier, "DROP TABLE loose")
        old, new = ('"shop.users"', '"shop.people"') if place.schemaless else ("shop.users", "people")
        place.run(f"ALTER TABLE {old} RENAME TO {new}")
        done(applier, "RENAME TABLE users TO people")
        last = {}
        for name in ("loose", "users", "people"):
            found = read(place, TableName("shop", name))
            assert found is not None
            last[name] = (found[-1][0], found[-1][5])
        renamed = (2, "RENAME TABLE users TO people")
        assert last == {"loose": (1, "DROP TABLE loose"), "users": renamed, "people": renamed}

    def test_statement_has_the_commit_time_that_only_the_end_of_its_event_has(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        ddl = {"kind": "ddl", "shard": UNKNOWN_SHARD, "last_barrier": made.barrier}
        rows = [change("insert", [(None, [n, "a", None])], table="users") | {"columns": NAMED} for n in range(2)]
        made.add(record(1, [statement(CREATE_USERS), rows[0]], last_frag=False, **ddl))
        end = record(1, [rows[1]], fragno=1, rows=2, **ddl)
        made.rig.accept(table(log(*made.records, end)[3:], offset=3))
        found = read(place, USERS.name)
        assert found is not None
        time = metadata(1)[2]
        assert [(row[2], row[6]) for row in found] == [("statement", time), ("insert", time), ("insert", time)]

    def test_discarded_statement_is_forgotten(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.stage_sql("ALTER TABLE users ADD COLUMN n INT")
        applier.target.discard()
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        found = read(place, USERS.name)
        assert found is not None
        assert [row[5] for row in found] == [CREATE_USERS]

    def test_statement_before_one_that_is_refused_is_forgotten(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        alter = "ALTER TABLE users ADD COLUMN n INT"
        with pytest.raises(Unsupported):
            applier.stage_sql(alter, "ALTER TABLE users ADD PRIMARY KEY (lacking)")
        applier.target.discard()
        applier.sql(alter)
        found = read(place, USERS.name)
        assert found is not None
        assert [row[5] for row in found] == [CREATE_USERS, alter]


class TestHistoryLoads:
    def test_rows_of_a_load_are_read_and_changes_during_it_are_changes(self, place: Place) -> None:
        made = Log(place)
        made.load(Part.BEGIN, statement("CREATE DATABASE IF NOT EXISTS shop"), statement(CREATE_USERS))
        made.load(Part.ROWS, change("read", [(None, [1, "ann", None])], table="users") | {"columns": NAMED})
        made.rows("update", ([1, "ann", None], [1, "eve", None]))
        made.rows("delete", ([9, "x", None], None))
        made.load(Part.END)
        assert place.read(USERS) == [(1, "eve", None)]
        assert made.history() == [
            ("read", None, {"id": 1, "name": "ann", "mail": None}, None),
            ("update", {"id": 1, "name": "ann", "mail": None}, {"id": 1, "name": "eve", "mail": None}, None),
            ("delete", {"id": 9, "name": "x", "mail": None}, None, None),
        ]

    def test_changes_of_a_keyless_table_that_awaits_its_rows_are_in_its_history(self, place: Place) -> None:
        made = Log(place)
        made.load(
            Part.BEGIN,
            statement("CREATE DATABASE IF NOT EXISTS shop"),
            statement("CREATE TABLE bare (id INT, name VARCHAR(50), mail VARCHAR(50))"),
            name="bare",
        )
        made.rows("insert", (None, [1, "early", None]), name="bare", key=())
        rows = change("read", [(None, [1, "early", None])] * 2, table="bare", key=()) | {"columns": NAMED}
        made.load(Part.WHOLE, rows, name="bare")
        made.load(Part.END, name="bare")
        row = {"id": 1, "name": "early", "mail": None}
        found = [("insert", None, row, None), ("read", None, row, None), ("read", None, row, None)]
        assert made.history("bare") == found

    def test_initial_load_leaves_histories(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        made.add(record(3, (), metadata={"snapshot": "begin"}, shard=UNKNOWN_SHARD, last_barrier=made.barrier))
        assert place.read(USERS) is None
        made.sql(CREATE_USERS)
        made.add(record(5, (), metadata={"snapshot": "end"}, shard=UNKNOWN_SHARD, last_barrier=made.barrier))
        made.rows("insert", (None, [1, "bob", None]))
        assert [row[0] for row in made.history()] == ["statement", "insert", "statement", "insert"]


class TestHistoryTables:
    def test_excluded_table_has_no_changes_in_its_history_until_it_is_loaded(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        made.rig.core._target.close()
        applier = Applier(place.open(history=SHOP))
        exclude(applier, "users")
        made.rig = Rig(applier.target, history([0], 99), history=SHOP)
        made.rows("insert", (None, [2, "bob", None]))
        assert [row[0] for row in made.history()] == ["statement", "insert"]
        with place.signals() as signals:
            assert {str(name): entry.changes for name, entry in signals.excluded("shop").items()} == {"shop.users": 1}
        made.load(Part.BEGIN, statement(CREATE_USERS))
        made.load(Part.ROWS, change("read", [(None, [2, "bob", None])], table="users") | {"columns": NAMED})
        made.load(Part.END)
        assert made.history()[2:] == [("read", None, {"id": 2, "name": "bob", "mail": None}, None)]

    def test_refusal_of_a_history_is_one_of_its_table(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        name = history_layout(USERS.name).name
        if place.indexes:
            shown = f'"{name}"' if place.schemaless else str(name)
            place.run(f"INSERT INTO {shown} (seqno, position, action) VALUES (2, 0, 'insert')")
        else:  # nothing refuses a row of a history there
            place.run(f"INSERT INTO {USERS.name} VALUES (1, 'mine', NULL)")
        with pytest.raises(TargetDiffers) as refused:
            made.rows("insert", (None, [1, "ann", None]))
        assert refused.value.tables == (USERS.name,)

    def test_history_that_was_dropped_begins_anew_as_its_error_says(self, place: Place) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        target = place.open(history=SHOP)
        made.continue_with(target)
        place.drop(HISTORY)
        with pytest.raises(TargetDiffers) as refused:
            made.rows("insert", (None, [2, "bob", None]))
        assert refused.value.tables == (USERS.name,)
        assert f"if {HISTORY.name} was dropped, delete its row of thl_tables and start again" in refused.value.hint
        target.close()
        name = f"schema_name = '{HISTORY.name.schema}' AND table_name = '{HISTORY.name.table}'"
        place.run(f"DELETE FROM {'thl_tables' if place.schemaless else 'thl.thl_tables'} WHERE {name}")
        Applier(place.open(history=SHOP)).target.close()
        assert read(place, USERS.name) == []

    def test_tables_that_are_there_get_their_histories_at_a_claim(self, place: Place) -> None:
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE)
        assert read(place, USERS.name) is None
        applier.target.close()
        only = history_tables(["shop.us*"])
        for _ in range(2):
            target = place.open(history=only)
            target.claim("shop")
            assert read(place, USERS.name) == []
            assert read(place, TableName("shop", "loose")) is None
            target.close()

    def test_history_stays_when_its_table_is_not_configured_any_more(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.target.close()
        other = Applier(place.open())
        other.sql("ALTER TABLE users ADD COLUMN n INT")
        other.target.close()
        found = read(place, USERS.name)
        assert found is not None
        assert [row[5] for row in found] == [CREATE_USERS]
        again = Applier(place.open(history=SHOP))
        again.sql("TRUNCATE TABLE users")
        found = read(place, USERS.name)
        assert found is not None
        assert [row[5] for row in found] == [CREATE_USERS, "TRUNCATE TABLE users"]

    def test_source_with_a_table_of_a_historys_name_is_refused(self, place: Place) -> None:
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", "CREATE DATABASE shop__history")
        applier.sql("CREATE TABLE shop__history.users (id INT PRIMARY KEY)", CREATE_USERS)
        applier.target.close()
        with pytest.raises(ConfigError, match=r"shop__history\.users") as refused:
            place.open(history=SHOP).claim("shop")
        assert "target.history" in refused.value.hint

    def test_statement_that_would_change_a_history_is_refused(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        with pytest.raises(ConfigError, match=r"history of shop\.users"):
            applier.sql("DROP DATABASE shop__history")

    def test_table_like_a_history_is_refused_with_the_name_of_the_history(self, place: Place) -> None:
        applier = Applier(place.open(history=SHOP))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        with pytest.raises(ConfigError, match=r"a table shop__history\.users, and here that is the history") as refused:
            applier.sql("CREATE TABLE other LIKE shop__history.users")
        assert "--exclude-table shop__history.users" in refused.value.hint

    @pytest.mark.parametrize("what", ["create", "rows", "load"])
    def test_source_table_that_gets_a_historys_name_is_refused_until_it_is_excluded(
        self, place: Place, what: str
    ) -> None:
        made = Log(place)
        made.sql("CREATE DATABASE shop")
        made.sql(CREATE_USERS)
        made.rows("insert", (None, [1, "ann", None]))
        before = made.history()
        create = "CREATE TABLE IF NOT EXISTS shop__history.users (seqno BIGINT PRIMARY KEY)"
        row = change(
            "insert", [(None, [9, 0, "insert", None, None, None, None])], schema="shop__history", table="users"
        )
        row |= {"columns": [asdict(each) | {"labels": []} for each in HISTORY.columns], "key_columns": [0, 1]}
        with pytest.raises(ConfigError, match=r"shop__history\.users.* history of shop\.users") as refused:
            match what:
                case "create":
                    made.sql(create)
                case "rows":
                    made.add(record(3, [row], last_barrier=made.barrier))
                case _:
                    made.load_of_history(Part.BEGIN, statement(create))
        assert refused.value.tables == ()
        assert "--exclude-table shop__history.users" in refused.value.hint
        made.rig.core._target.close()
        applier = Applier(place.open(history=SHOP))
        applier.target.exclude({HISTORY.name: replace(EXCLUDED, since=Seqno(3))})
        applier.target.commit(applier.position, [])
        made.continue_with(applier.target)
        if what == "load":
            made.load_of_history(Part.ROWS, row | {"action": "read"})
            made.load_of_history(Part.END)
        made.rows("insert", (None, [2, "bob", None]))
        assert made.history() == [*before, ("insert", None, {"id": 2, "name": "bob", "mail": None}, None)]

    def test_foreign_table_of_a_historys_name_is_left_alone(self, place: Place) -> None:
        name = '"shop__history.users"' if place.schemaless else "shop__history.users"
        if not place.schemaless:
            place.run("CREATE SCHEMA shop__history")
        place.run(f"CREATE TABLE {name} (mine {place.kinds[0]})")
        applier = Applier(place.open(history=SHOP))
        with pytest.raises(TargetDiffers):
            applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.target.close()
        assert place.query(f"SELECT mine FROM {name}") == []
