"""The contract of every target for metadata columns; the `test_target_*` files run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from connector.applier import open_commit
from connector.applier.undo import compact_inverse
from connector.errors import ConfigError, TargetDiffers
from connector.log.compact.compact import Compactor
from connector.log.compact.metadata_columns import MetadataColumns, metadata_columns
from connector.log.compact.net_changes import once_more
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableLayout
from tests.contract.target_again import taken_back
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, LOOSE, USERS, Applier, Place, stops
from tests.support.fragments import change, column, record, statement
from tests.support.long import long
from tests.support.net import Row, in_order, layout, net
from tests.unit.applier.test_core import Rig, history, log, table

NAMES = {
    "commit_time": "thl_commit_time",
    "seqno": "thl_seqno",
    "gtid": "thl_gtid",
    "event_id": "thl_event_id",
    "server_id": "thl_server_id",
}
ALL = metadata_columns(NAMES.items())
FEW = metadata_columns((("gtid", "GTID"), ("seqno", "seqno")))
assert ALL is not None
assert FEW is not None
NONE: Row = (None,) * 5

# Rows of all three: an integer and two texts.
KEYED = layout("shop.keyed", ["id int", "v varchar(9)", "w varchar(9)"], ["id"])
PARTLY = layout("shop.partly", ["id int", "v varchar(9)", "w varchar(9)"], ["id"])
BARE = layout("shop.bare", ["id int", "v varchar(9)", "w varchar(9)"])
TABLES = (KEYED, PARTLY, BARE)
COLUMNS = [column("id"), *(column(name, "varchar(9)") | {"charset": "utf8mb4"} for name in ("v", "w"))]
EVERY = {0, 1, 2}


def metadata(seqno: int | None) -> Row:
    """The columns of ALL in rows of an event as `record` makes it."""
    if seqno is None:
        return NONE
    gtid = f"6f1c9a52-0000-11ee-8c99-0242ac120002:{seqno + 1}"
    time = f"2023-11-14 22:13:20.{seqno:06}"
    return (seqno, gtid, time, f"binlog.000001:{1000 + seqno:016d};7", 1)


def read(place: Place, each: TableLayout) -> list[Row]:
    assert ALL is not None
    return place.read(ALL.beside(each)) or []


@dataclass
class Source:
    """Three tables, one row after the other, each with the event that wrote it last."""

    random: Random
    rows: dict[TableLayout, list[tuple[list[Any], int | None]]] = field(
        default_factory=lambda: {each: [] for each in TABLES}
    )

    def change(self, each: TableLayout, seqno: int) -> dict[str, Any] | None:
        """Make a random change of a table, as a record of the log."""
        random, rows = self.random, self.rows[each]
        action = random.choice(("insert", "update", "update", "delete")) if rows else "insert"
        old, new = None, None
        if action != "insert":
            values = random.choice(rows)[0]
            # Of equal rows without a key the newest counts.
            old = max((row for row in rows if row[0] == values), key=lambda row: -1 if row[1] is None else row[1])
            rows.remove(old)
        if action != "delete":
            new = [random.randrange(7), random.choice("xy"), random.choice("xy")] if each.key else [1, "x", "x"]
            new = [1, random.choice("xy"), "x"] if not each.key else new
        known = EVERY
        if each is PARTLY:
            known = {0} | {index for index in EVERY if random.random() < 0.5} if action == "insert" else known
            if action == "update":
                known = {index for index in EVERY if random.random() < 0.6}
        if new is not None:
            new = [
                value if index in known else None if old is None else old[0][index] for index, value in enumerate(new)
            ]
            if each.key and any(row[0][0] == new[0] for row in rows):
                if old is not None:
                    rows.append(old)
                return None
            rows.append((new, seqno))
        before = {0} if each is PARTLY else EVERY
        image = (
            None if old is None else [value for index, value in enumerate(old[0]) if index in before],
            None if new is None else [value for index, value in enumerate(new) if index in known],
        )
        name = each.name.table
        more = {"before_present": bits(before), "after_present": bits(known)} if each is PARTLY else {}
        return change(action, [image], table=name, key=each.key) | {"columns": COLUMNS} | more

    def state(self) -> dict[TableLayout, list[Row]]:
        return {each: in_order((*row, *metadata(seqno)) for row, seqno in rows) for each, rows in self.rows.items()}


def bits(columns: set[int]) -> bytes:
    return bytes([sum(1 << index for index in columns)])


def histories(random: Random, events: int) -> Iterator[tuple[list[dict[str, Any]], dict[TableLayout, list[Row]]]]:
    """Events, each in its fragments, and what the tables hold after it. Most is known only at an event's end."""
    source = Source(random)
    columns = {each: f"id INT{' PRIMARY KEY' * bool(each.key)}, v VARCHAR(9), w VARCHAR(9)" for each in TABLES}
    create = [statement(f"CREATE TABLE {each.name} ({columns[each]})") for each in TABLES]
    yield [record(0, create, kind="ddl", shard="#UNKNOWN")], source.state()
    for seqno in range(1, events):
        tables = [random.choice(TABLES) for _ in range(random.randint(0, 8))]
        changes = [made for each in tables if (made := source.change(each, seqno)) is not None]
        cut = random.randint(0, len(changes)) if random.random() < 0.4 else 0
        parts = [changes[:cut], changes[cut:]] if cut else [changes]
        fragments = []
        rows = 0
        for fragno, part in enumerate(parts):
            rows += len(part)
            last = fragno + 1 == len(parts)
            late = {} if last else {"event_id": None, "commit_time": None, "gtid": None}
            fragments.append(record(seqno, part, fragno=fragno, last_frag=last, rows=rows, last_barrier=0, **late))
        yield fragments, source.state()


@pytest.fixture(params=[1, *long(200), 1 << 20])
def staged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How much of an unfinished event is kept before it goes to the target."""
    monkeypatch.setattr(open_commit, "STAGE_BYTES", request.param)
    return int(request.param)


@pytest.mark.parametrize("seed", [0, *long(1, 2)])
def test_each_row_has_the_transaction_that_wrote_it_last(place: Place, seed: int, staged: int) -> None:
    random = Random(f"{seed} {staged}")
    events = 60
    made = list(histories(random, events))
    values = log(*(one for fragments, _ in made for one in fragments))
    known = history([0], events - 1)
    at = 0
    target = place.open(columns=ALL)
    rig = Rig(target, known, columns=ALL)
    while rig.core.position.seqno < events - 1:
        step = random.choice((1, 2, 5, 40))
        rig.accept(table(values[at : at + step], offset=at))
        at += step
        if rig.core.position.seqno >= 0:
            _, expected = made[rig.core.position.seqno]
            if random.random() < 0.3:
                target.close()  # with staged rows
                target = place.open(columns=ALL)
                rig = Rig(target, known, columns=ALL)
                at = rig.core.position.offsets[0]
            assert {each: read(place, each) for each in TABLES} == expected


def one_table(
    each: TableLayout, random: Random, events: int
) -> tuple[list[bytes], list[int], list[dict[TableLayout, list[Row]]]]:
    """Whole images: messages, where each event begins, and what the table holds after it."""
    source = Source(random)
    sql = f"CREATE TABLE {each.name} (id INT{' PRIMARY KEY' * bool(each.key)}, v VARCHAR(9), w VARCHAR(9))"
    records = [record(0, [statement(sql)], kind="ddl", shard="#UNKNOWN")]
    states = [source.state()]
    for seqno in range(1, events):
        changes = [made for _ in range(4) if (made := source.change(each, seqno)) is not None]
        records.append(record(seqno, changes, last_barrier=0))
        states.append(source.state())
    return log(*records), list(range(1, events + 1)), states


@pytest.mark.parametrize("seed", [0, *long(1)])
def test_replayed_rows_keep_their_metadata(place: Place, seed: int) -> None:
    random = Random(seed)
    values, starts, states = one_table(KEYED, random, 50)
    known = history([0], 49)
    target = place.open(columns=ALL)
    Rig(target, known, columns=ALL).accept(table(values[: starts[40]]))
    first = random.randint(2, 30)
    target.commit(taken_back(target.claim("shop"), first, starts[first]), [])
    rig = Rig(target, known, columns=ALL)
    for at in range(starts[first], starts[40], 4):
        rig.accept(table(values[at : min(at + 4, starts[40])], offset=at))
    assert rig.core.position.consistent
    assert read(place, KEYED) == states[39][KEYED]
    rig.accept(table(values[starts[40] :], offset=starts[40]))
    assert read(place, KEYED) == states[49][KEYED]


def undone(place: Place, values: list[bytes], starts: list[int], to: int) -> None:
    target = place.open_for_undo(columns=ALL)
    at = target.claim("shop")
    collapse = Compactor("thl.shop", ALL, known=False)
    for seqno in range(at.seqno, to, -1):
        compact_inverse(collapse, "thl.shop", values[starts[seqno] : starts[seqno] + 1])
    target.stage(collapse.drain(), last=True)
    target.commit(replace(at, seqno=Seqno(to), offsets={0: starts[to + 1]}), [])
    target.close()


@pytest.mark.parametrize("seed", [0, *long(1, 2)])
def test_rows_taken_back_have_null_metadata_until_written(place: Place, seed: int) -> None:
    random = Random(seed)
    values, starts, states = one_table(KEYED, random, 50)
    known = history([0], 49)
    target = place.open(columns=ALL)
    Rig(target, known, columns=ALL).accept(table(values))
    to = random.randint(5, 40)
    before = {row[0]: row for row in states[49][KEYED]}
    undone(place, values, starts, to)
    # Since then untouched is what has still the transaction that it has in the end.
    expected = [
        row if before.get(row[0]) == row and int(str(row[3])) <= to else (*row[:3], *NONE) for row in states[to][KEYED]
    ]
    assert any(row[3] is None for row in expected)
    assert read(place, KEYED) == expected
    Rig(target, known, columns=ALL).accept(table(values[starts[to + 1] :], offset=starts[to + 1]))
    assert read(place, KEYED) == states[49][KEYED]


@pytest.mark.parametrize("seed", [0, *long(1)])
def test_equal_rows_taken_back_have_no_later_metadata(place: Place, seed: int) -> None:
    random = Random(seed)
    values, starts, states = one_table(BARE, random, 50)
    target = place.open(columns=ALL)
    Rig(target, history([0], 49), columns=ALL).accept(table(values))
    assert read(place, BARE) == states[49][BARE]
    to = 49
    for _ in range(3):
        to = random.randint(to - 14, to - 1)
        undone(place, values, starts, to)
        found = read(place, BARE)
        assert sorted(map(str, (row[:3] for row in found))) == sorted(map(str, (row[:3] for row in states[to][BARE])))
        assert max(int(str(row[3] or 0)) for row in found) <= to
    assert None in {row[3] for row in found}


@pytest.fixture
def with_metadata(place: Place) -> Applier:
    made = Applier(place.open(columns=ALL))
    made.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE)
    return made


def wide(each: TableLayout) -> TableLayout:
    assert ALL is not None
    return ALL.beside(each)


class TestRowsThatAreFound:
    def test_keyless_rows_are_compared_by_source_columns(self, place: Place, with_metadata: Applier) -> None:
        row: Row = (1, None, -0.0, "[]")
        with_metadata.rows(net(wide(LOOSE), inserts=[(*row, *metadata(n)) for n in (3, 5, 4)] + [(*row, *NONE)]))
        with_metadata.rows(net(wide(LOOSE), deletes=[(*row, *NONE)] * 2, inserts=[(2, "b", 0.5, None, *metadata(6))]))
        assert read(place, LOOSE) == [(*row, *NONE), (*row, *metadata(3)), (2, "b", 0.5, None, *metadata(6))]

    def test_missing_rows_are_named_by_source_columns(self, with_metadata: Applier) -> None:
        with_metadata.rows(net(wide(USERS), inserts=[(1, "ann", None, *metadata(1))]))
        with pytest.raises(TargetDiffers) as raised:
            with_metadata.rows(net(wide(USERS), updates=[(9, "x", None, *metadata(2))]))
        assert raised.value.where["rows"] == "id=9"

    def test_missing_rows_without_a_key_are_named(self, with_metadata: Applier) -> None:
        with_metadata.rows(net(wide(LOOSE), inserts=[(1, "there", None, None, *metadata(1))]))
        gone = [(1, "there", None, None, *NONE), (2, "lost", None, None, *NONE)]
        with pytest.raises(TargetDiffers) as raised:
            with_metadata.rows(net(wide(LOOSE), deletes=gone))
        named = str(raised.value.where["rows"] or "lost")  # not every target names them
        assert "lost" in named
        assert "there" not in named

    def test_table_with_only_a_key_is_updated_with_metadata(self, place: Place, with_metadata: Applier) -> None:
        only = layout("shop.only", ["id bigint"], ["id"])
        with_metadata.sql("CREATE TABLE only (id BIGINT PRIMARY KEY)")
        with_metadata.rows(net(wide(only), inserts=[(1, *metadata(1)), (2, *metadata(1))]))
        with_metadata.rows(net(wide(only), updates=[(1, *metadata(7))]))
        with_metadata.rows(once_more(net(wide(only), updates=[(2, *metadata(8))])))
        assert read(place, only) == [(1, *metadata(7)), (2, *metadata(8))]

    def test_metadata_of_an_events_end_is_set_in_all_its_rows_only(self, place: Place, with_metadata: Applier) -> None:
        with_metadata.rows(net(wide(USERS), inserts=[(1, "a", None, *metadata(1)), (2, "b", None, *metadata(1))]))
        early: Row = (9, *NONE[1:])
        with_metadata.target.stage([net(wide(USERS), updates=[(1, "new", None, *early)])], last=False)
        with_metadata.target.stage([net(wide(LOOSE), inserts=[(1, "x", 0.5, None, *early)])], last=False)
        with_metadata.target.stage([net(wide(USERS), inserts=[(3, "c", None, *early)])], last=False)
        names = [each.name for each in wide(USERS).columns[3:]]
        moved = {"id": 4, **dict(zip(names, early, strict=True))}
        with_metadata.target.stage([net(wide(USERS), moved=[(moved, (2,))])], last=False)
        with_metadata.target.set_metadata(list(metadata(9)))  # type: ignore[arg-type]
        with_metadata.target.stage([net(wide(USERS), inserts=[(5, "d", None, *metadata(10))])], last=True)
        with_metadata.commit(rows=5)
        assert read(place, USERS) == [
            (1, "new", None, *metadata(9)),
            (3, "c", None, *metadata(9)),
            (4, "b", None, *metadata(9)),
            (5, "d", None, *metadata(10)),
        ]
        assert read(place, LOOSE) == [(1, "x", 0.5, None, *metadata(9))]
        with_metadata.rows(net(wide(USERS), updates=[(5, "e", None, *metadata(11))]))
        assert read(place, USERS)[-1] == (5, "e", None, *metadata(11))


class TestDefinitions:
    def test_ddl_keeps_the_metadata_of_rows(self, place: Place, with_metadata: Applier) -> None:
        with_metadata.rows(net(wide(USERS), inserts=[(1, "ann", "a", *metadata(3))]))
        with_metadata.sql(
            "ALTER TABLE users ADD COLUMN n INT DEFAULT 5 FIRST, MODIFY name TEXT, DROP COLUMN mail",
            "ALTER TABLE users ADD COLUMN z INT",
        )
        with_metadata.sql("RENAME TABLE users TO people", "CREATE TABLE more LIKE people")
        people = layout("shop.people", ["n int", "id int", "name text", "z int"], ["id"])
        more = replace(people, name=people.name._replace(table="more"))
        with_metadata.rows(net(wide(people), inserts=[(6, 2, "bob", None, *metadata(4))]))
        with_metadata.rows(net(wide(more), inserts=[(6, 2, "bob", None, *metadata(5))]))
        assert read(place, people) == [(5, 1, "ann", None, *metadata(3)), (6, 2, "bob", None, *metadata(4))]
        assert read(place, more) == [(6, 2, "bob", None, *metadata(5))]
        with_metadata.target.close()
        again = Applier(place.open(columns=ALL))
        again.sql("ALTER TABLE people DROP PRIMARY KEY")
        again.rows(net(wide(replace(people, key=())), deletes=[(6, 2, "bob", None, *NONE)]))
        assert read(place, people) == [(5, 1, "ann", None, *metadata(3))]

    def test_table_created_after_a_drop_has_metadata_columns(self, place: Place, with_metadata: Applier) -> None:
        with_metadata.sql("DROP TABLE users", "CREATE TABLE users (id INT PRIMARY KEY)")
        users = layout("shop.users", ["id int"], ["id"])
        with_metadata.rows(net(wide(users), inserts=[(1, *metadata(4))]))
        assert read(place, users) == [(1, *metadata(4))]

    def test_tables_of_a_load_have_metadata_columns(self, place: Place, with_metadata: Applier) -> None:
        with_metadata.target.begin_snapshot()
        with_metadata.commit(consistent=False)
        with_metadata.sql(CREATE_USERS)
        with_metadata.rows(net(wide(USERS), inserts=[(1, "ann", None, *metadata(2))]))
        assert read(place, USERS) == [(1, "ann", None, *metadata(2))]

    @pytest.mark.parametrize(
        "sql",
        [
            "CREATE TABLE t (id INT, thl_gtid INT)",
            "ALTER TABLE users ADD COLUMN thl_seqno INT",
            "ALTER TABLE users RENAME COLUMN mail TO thl_seqno",
        ],
    )
    def test_source_column_with_a_metadata_name_stops(self, with_metadata: Applier, sql: str) -> None:
        stops(with_metadata, ConfigError, sql)


def refused(place: Place, columns: MetadataColumns | None) -> list[str]:
    """The statements of the error of a claim with these columns."""
    target = place.open(columns=columns)
    with pytest.raises(ConfigError) as raised:
        target.claim("shop")
    target.close()
    assert raised.value.hint is not None
    return raised.value.hint.partition("them: ")[2].split("; ")


class TestTablesThatAreThere:
    def test_existing_rows_have_null_metadata_until_written(self, place: Place, applier: Applier) -> None:
        applier.rows(
            net(USERS, inserts=[(1, "ann", None), (2, "bob", None)]), net(LOOSE, inserts=[(1, "x", 0.5, None)])
        )
        applier.target.close()
        for _ in range(2):  # the second time there is nothing to do
            again = Applier(place.open(columns=ALL))
            assert read(place, LOOSE) == [(1, "x", 0.5, None, *NONE)]
            again.target.close()
        again = Applier(place.open(columns=ALL))
        again.rows(
            net(wide(USERS), updates=[(1, "new", None, *metadata(9))]),
            net(wide(LOOSE), deletes=[(1, "x", 0.5, None, *metadata(9))]),
        )
        assert read(place, USERS) == [(1, "new", None, *metadata(9)), (2, "bob", None, *NONE)]
        assert read(place, LOOSE) == []

    def test_existing_tables_get_another_metadata_column(self, place: Place, with_metadata: Applier) -> None:
        with_metadata.rows(net(wide(USERS), inserts=[(1, "ann", None, *metadata(3))]))
        with_metadata.target.close()
        names = dict(NAMES)
        del names["gtid"]
        some = metadata_columns(names.items())
        for drop in refused(place, some):
            place.run(drop)
        Applier(place.open(columns=some)).target.close()
        Applier(place.open(columns=ALL)).target.close()
        gtid = metadata(3)[:1] + (None,) + metadata(3)[2:]  # noqa: RUF005
        assert read(place, USERS) == [(1, "ann", None, *gtid)]

    def test_tables_with_unconfigured_metadata_columns_stop_unchanged(
        self, place: Place, with_metadata: Applier
    ) -> None:
        with_metadata.rows(net(wide(USERS), inserts=[(1, "ann", None, *metadata(3))]))
        with_metadata.target.close()
        assert len(refused(place, FEW)) == 10
        drops = refused(place, None)
        assert len(drops) == 10
        again = Applier(place.open(columns=ALL))
        again.rows(net(wide(USERS), updates=[(1, "bob", None, *metadata(4))]))
        again.target.close()
        for drop in drops:
            place.run(drop)
        without = Applier(place.open())
        without.rows(net(USERS, updates=[(1, "cid", None)]))
        assert place.read(USERS) == [(1, "cid", None)]

    @pytest.mark.parametrize("kind", ["the source's", "another's"])
    def test_table_with_a_column_of_a_metadata_name_stops(self, place: Place, applier: Applier, kind: str) -> None:
        if kind == "the source's":
            applier.sql("ALTER TABLE users ADD COLUMN thl_seqno INT")
        applier.target.close()
        if kind != "the source's":
            name = '"shop.users"' if "Sqlite" in type(applier.target).__name__ else "shop.users"
            place.run(f"ALTER TABLE {name} ADD COLUMN thl_seqno INTEGER")
        with pytest.raises(ConfigError) as raised:
            place.open(columns=ALL).claim("shop")
        assert raised.value.where["column"] == "thl_seqno"
