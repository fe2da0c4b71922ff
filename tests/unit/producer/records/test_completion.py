"""Partial images are completed from the rows that earlier events left, against a model of plain dicts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.clock import SystemClock
from connector.config.source import Source
from connector.errors import Unsupported
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.format import avro
from connector.log.ids import Action, Epoch, Kind, LogId, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.statement_options import TABLE_EXISTED
from connector.mysql.transforms.filters import capture_of
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.records.completion import FLUSH_SECONDS, EventCompleter
from connector.producer.records.conversion import split, value_of
from connector.producer.records.filter_history import FilterHistory
from connector.records.database import Database
from connector.records.versions import ENDED, STATE, StoreState, Versions
from tests.support.log_objects import epochs

LOG = LogId("b" * 32)
NAME = TableName("shop", "t")
CREATE = "CREATE TABLE shop.t (id INT NOT NULL PRIMARY KEY, a INT DEFAULT 5, v VARCHAR(20) CHARSET utf8mb4 DEFAULT 'd')"
LAYOUT = TableLayout(
    NAME,
    (
        Column("id", "int", nullable=False),
        Column("a", "int"),
        Column("v", "varchar(20)", charset="utf8mb4"),
    ),
    (0,),
)
Image = dict[int, Any] | None


class Log:
    """Gives events to a completion, and keeps what comes out."""

    def __init__(self, folder: Path, partial: Sequence[str] = (), epochs: Sequence[EpochRecord] = ()) -> None:
        self.folder = folder
        self.partial = partial
        self.epochs = epochs
        self.epoch = 1
        self.seqno = 0
        self.open()

    def open(self) -> None:
        database = Database(self.folder, cache_bytes=1 << 20)
        versions = Versions(database, LOG, horizon=1_000_000, cache_bytes=1 << 20)
        self.completion = EventCompleter(versions, self.partial, FilterHistory(self.epochs), service="shop")

    def event(self, *changes: Rows | Statement, kind: Kind = Kind.TRANSACTION, **metadata: str) -> list[Any]:
        end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
        begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), kind, metadata)
        given = TransactionBatch(begin, list(changes), end)
        found = self.completion.complete(given, Seqno(self.seqno), Epoch(self.epoch))
        self.seqno += 1
        return found.changes

    def close(self) -> None:
        self.completion.close()

    def ddl(self, sql: str, **options: str) -> None:
        self.event(Statement("shop", sql, options), kind=Kind.DDL)

    def load(self, part: Part, *changes: Rows | Statement, load: str = "l1") -> list[Any]:
        return self.event(*changes, kind=Kind.LOAD, **LoadEvent(load, part, NAME).metadata())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    made.ddl(CREATE)
    yield made
    made.completion.close()


def rows(action: Action, *images: tuple[Image, Image], layout: TableLayout = LAYOUT) -> Rows:
    """Rows of one change: the columns of all before images are the same, and of all after images."""
    data, ends = bytearray(), array("Q")
    for before, after in images:
        for image in (before, after):
            data += b"\0" if image is None else b"\2" + avro.array(avro.union(image[at]) for at in sorted(image))
        ends.append(len(data))
    return Rows(layout, action, bytes(data), ends, bits(images[0][0], layout), bits(images[0][1], layout))


def bits(image: Image, layout: TableLayout) -> bytes:
    if image is None or len(image) == len(layout.columns):
        return b""
    return bytes([sum(1 << at for at in image)])


def values(found: Rows) -> list[tuple[list[Any] | None, list[Any] | None]]:
    """The images of whole rows."""
    assert not (found.before or found.after)
    width, start, result = len(found.layout.columns), 0, []
    for end in found.ends:
        record, at, images = bytes(found.data[start:end]), 0, []
        for _ in range(2):
            if record[at] == 0:
                images.append(None)
                at += 1
                continue
            assert record[at : at + 2] == b"\2" + avro.long(width)
            size = next(size for size in range(at + 2, len(record) + 1) if _is_content(record[at + 2 : size], width))
            images.append([value_of(one) for one in split(record[at + 2 : size], width)])
            assert record[size] == 0
            at = size + 1
        assert at == len(record)
        result.append((images[0], images[1]))
        start = end
    return result


def _is_content(data: bytes, width: int) -> bool:
    try:
        return len(split(data, width)) == width
    except (ValueError, IndexError):
        return False


def insert(*given: dict[int, Any]) -> Rows:
    return rows(Action.INSERT, *((None, one) for one in given))


def update(*given: tuple[dict[int, Any], dict[int, Any]]) -> Rows:
    return rows(Action.UPDATE, *given)


def delete(*given: dict[int, Any]) -> Rows:
    return rows(Action.DELETE, *((one, None) for one in given))


def test_an_insert_gets_the_defaults_of_its_absent_columns(log: Log) -> None:
    (found,) = log.event(insert({0: 1}))
    assert values(found) == [(None, [1, 5, "d"])]
    log.ddl("ALTER TABLE shop.t ALTER COLUMN v SET DEFAULT 'new'")
    (found,) = log.event(insert({0: 2, 1: None}))
    assert values(found) == [(None, [2, None, "new"])]


def test_updates_and_deletes_get_the_columns_of_earlier_events(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    (found,) = log.event(update(({0: 1}, {2: "ONE"}), ({0: 2}, {2: "TWO"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "ONE"]), ([2, 20, "two"], [2, 20, "TWO"])]
    (found,) = log.event(delete({0: 2}))
    assert values(found) == [([2, 20, "TWO"], None)]


def test_rows_of_one_event_see_each_other(log: Log) -> None:
    found = log.event(insert({0: 1}), update(({0: 1}, {1: 6})), update(({0: 1}, {2: "x"})), delete({0: 1}))
    assert [values(one) for one in found] == [
        [(None, [1, 5, "d"])],
        [([1, 5, "d"], [1, 6, "d"]), ([1, 6, "d"], [1, 6, "x"])],  # joined, as whole images are
        [([1, 6, "x"], None)],
    ]


def test_swapped_keys_take_their_columns_along(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    (found,) = log.event(update(({0: 1}, {0: -1}), ({0: 2}, {0: 1}), ({0: -1}, {0: 2})))
    assert [after for _, after in values(found)] == [[-1, 10, "one"], [1, 20, "two"], [2, 10, "one"]]
    (found,) = log.event(delete({0: 1}, {0: 2}))
    assert values(found) == [([1, 20, "two"], None), ([2, 10, "one"], None)]


def test_an_after_image_alone_is_completed_by_its_before_image(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")  # as MariaDB's FULL_NODUP: the row need not be known
    (found,) = log.event(update(({0: 1, 1: 10, 2: "one"}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    (found,) = log.event(delete({0: 1}))
    assert values(found) == [([1, 11, "one"], None)]
    log.completion.close()


def test_whole_images_are_passed_on_as_they_are_and_known_afterwards(log: Log) -> None:
    given = insert({0: 1, 1: 10, 2: "one"})
    assert log.event(given) == [given]
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    assert found.logged == update(({0: 1}, {1: 11})).data  # by which the source is recognised


def test_a_row_that_is_not_known_stops_with_its_key_and_what_to_do(log: Log) -> None:
    with pytest.raises(Unsupported, match="does not know the row") as caught:
        log.event(update(({0: 7}, {1: 1})))
    assert caught.value.where["table"] == NAME
    assert caught.value.where["key"] == "id=7"
    assert "thl load shop.t" in caught.value.hint
    assert "source.records.partial" in caught.value.hint


def test_a_row_that_is_not_known_stays_partial_where_that_is_allowed(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    found = log.event(update(({0: 1}, {1: 1}), ({0: 7}, {1: 2}), ({0: 1}, {1: 3})))
    assert [(one.count, bool(one.after)) for one in found] == [(1, False), (1, True), (1, False)]
    assert b"".join(one.logged for one in found) == update(({0: 1}, {1: 1}), ({0: 7}, {1: 2}), ({0: 1}, {1: 3})).data
    assert values(found[2]) == [([1, 1, "one"], [1, 3, "one"])]
    log.completion.close()


def test_rows_may_be_missing_once_one_that_stays_partial_has_changed_its_key(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.event(update(({0: 7}, {1: 2})))
    assert log.completion.tables.entry(NAME).reason == ""
    log.event(update(({0: 7}, {0: 8})))
    assert "changed the key of a row that was not known" in log.completion.tables.entry(NAME).reason
    log.close()


def test_a_row_whose_after_image_is_whole_is_known_from_then_on(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    (found,) = log.event(update(({0: 7}, {0: 8, 1: 1, 2: "x"})))
    assert found.before
    (found,) = log.event(update(({0: 8}, {1: 2})))
    assert values(found) == [([8, 1, "x"], [8, 2, "x"])]
    log.close()


def test_rows_of_two_statements_keep_the_text_of_each(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.completion.loads = known(asked="l2", state=LoadState.CANCELLED)  # what is not known stays partial
    changes = []
    for key, query in ((1, "UPDATE one"), (1, "UPDATE one"), (1, "UPDATE two"), (9, "UPDATE three")):
        one = update(({0: key}, {1: 11}))
        changes.append(Rows(LAYOUT, one.action, one.data, one.ends, one.before, one.after, query))
    found = log.event(*changes)
    assert [(one.count, one.query) for one in found] == [(2, "UPDATE one"), (1, "UPDATE two"), (1, "UPDATE three")]


def test_an_insert_without_a_known_default_stops(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    with pytest.raises(Unsupported, match="no value for column a, and its default is not known"):
        log.event(insert({0: 1}))
    log.completion.close()


@pytest.mark.parametrize(
    ("existed", "why"),
    [({}, "may have found it"), ({TABLE_EXISTED: "1"}, "the log begins without its rows"), ({TABLE_EXISTED: "0"}, "")],
    ids=["unsure", "existed", "made"],
)
def test_create_if_not_exists_gives_defaults_only_to_a_table_that_it_made(
    tmp_path: Path, existed: dict[str, str], why: str
) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), **existed)
    if why:
        with pytest.raises(Unsupported, match="no value for column a, and its default is not known"):
            log.event(insert({0: 1}))
        with pytest.raises(Unsupported, match=f"does not know the row: .*{why}"):
            log.event(update(({0: 1}, {1: 2})))
    else:
        assert values(log.event(insert({0: 1}))[0]) == [(None, [1, 5, "d"])]
    log.completion.close()


def test_a_table_without_a_key_is_completed_by_defaults_and_before_images_or_stops(log: Log) -> None:
    keyless = TableLayout(TableName("shop", "n"), LAYOUT.columns)
    log.ddl(CREATE.replace("shop.t", "shop.n").replace(" PRIMARY KEY", ""))
    given = rows(Action.INSERT, (None, {0: 1, 1: 2, 2: "x"}), layout=keyless)
    assert log.event(given) == [given]
    (found,) = log.event(rows(Action.INSERT, (None, {0: 1}), (None, {0: 2}), layout=keyless))
    assert values(found) == [(None, [1, 5, "d"]), (None, [2, 5, "d"])]
    (found,) = log.event(rows(Action.UPDATE, ({0: 1, 1: 5, 2: "d"}, {1: 6}), layout=keyless))
    assert values(found) == [([1, 5, "d"], [1, 6, "d"])]
    with pytest.raises(Unsupported, match="without a key"):
        log.event(rows(Action.DELETE, ({0: 1}, None), layout=keyless))


def test_versions_are_converted_to_later_definitions_when_they_are_read(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl(
        "ALTER TABLE shop.t ADD COLUMN n DECIMAL(9,2) NOT NULL DEFAULT 1.5 FIRST, DROP COLUMN a, RENAME COLUMN v TO w"
    )
    columns = (
        Column("n", "decimal(9,2)", nullable=False),
        LAYOUT.columns[0],
        Column("w", "varchar(20)", charset="utf8mb4"),
    )
    layout = TableLayout(NAME, columns, (1,))
    log.ddl("ALTER TABLE shop.t MODIFY n DECIMAL(12,4) NOT NULL DEFAULT 1.5")
    layout = TableLayout(NAME, (Column("n", "decimal(12,4)", nullable=False), *columns[1:]), (1,))
    (found,) = log.event(rows(Action.UPDATE, ({1: 1}, {2: "uno"}), layout=layout))
    assert values(found) == [(["1.5000", 1, "one"], ["1.5000", 1, "uno"])]


def test_floating_numbers_and_columns_with_capitals_are_completed_and_converted(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    log.ddl("CREATE TABLE shop.t (Id INT NOT NULL PRIMARY KEY, Price DOUBLE, Note VARCHAR(9) CHARSET utf8mb4)")
    columns = (
        Column("Id", "int", nullable=False),
        Column("Price", "double"),
        Column("Note", "varchar(9)", charset="utf8mb4"),
    )
    layout = TableLayout(NAME, columns, (0,))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 1.5, 2: "one"}), layout=layout))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {2: "uno"}), layout=layout))
    assert values(found) == [([1, 1.5, "one"], [1, 1.5, "uno"])]
    log.ddl("ALTER TABLE shop.t ADD COLUMN N INT DEFAULT 3")
    later = TableLayout(NAME, (*columns, Column("N", "int")), (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 2.5}), layout=later))
    assert values(found) == [([1, 1.5, "uno", 3], [1, 2.5, "uno", 3])]
    log.close()


def test_rows_that_are_known_by_another_key_than_before_are_not_known(log: Log) -> None:
    name = TableName("shop", "u")
    log.ddl("CREATE TABLE shop.u (id INT NOT NULL UNIQUE, a INT NOT NULL UNIQUE, v VARCHAR(20) CHARSET utf8mb4)")
    columns = (LAYOUT.columns[0], Column("a", "int", nullable=False), LAYOUT.columns[2])
    by_id, by_a = TableLayout(name, columns, (0,)), TableLayout(name, columns, (1,))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 2, 2: "one"}), (None, {0: 2, 1: 1, 2: "two"}), layout=by_id))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {2: "ONE"}), layout=by_id))
    assert values(found) == [([1, 2, "one"], [1, 2, "ONE"])]
    log.ddl("ALTER TABLE shop.u DROP INDEX id")
    with pytest.raises(Unsupported, match="known by another key"):
        log.event(rows(Action.UPDATE, ({1: 1}, {2: "TWO"}), layout=by_a))


def test_truncated_dropped_and_renamed_tables_have_the_rows_that_they_have(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("RENAME TABLE shop.t TO shop.u")
    renamed = TableLayout(TableName("shop", "u"), LAYOUT.columns, (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=renamed))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    log.ddl("TRUNCATE TABLE shop.u")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=renamed))


def test_a_definition_that_is_not_understood_makes_the_rows_unknown(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.t MODIFY a VARCHAR(9)")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "x"})))


def test_rows_of_a_table_that_is_exchanged_for_a_partition_are_not_known(log: Log) -> None:
    log.ddl(CREATE.replace("shop.t", "shop.n"))
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.n EXCHANGE PARTITION p WITH TABLE shop.t")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "x"})))


def test_going_back_restores_rows_and_definitions(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))  # event 1
    log.event(update(({0: 1}, {0: 3, 1: 11})))  # 2
    log.ddl("ALTER TABLE shop.t DROP COLUMN a")  # 3
    log.ddl("DROP TABLE shop.t")  # 4
    log.completion.go_back(Seqno(1))
    log.seqno = 2
    (found,) = log.event(update(({0: 1}, {2: "uno"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]
    log.completion.close()
    log.open()
    (found,) = log.event(delete({0: 1}))
    assert values(found) == [([1, 10, "uno"], None)]


def test_a_load_brings_rows_and_its_end_deletes_what_it_has_not_brought(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    found = log.event(update(({0: 9}, {1: 1})))  # not brought yet: it stays partial
    assert found[0].after
    given = rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"}), (None, {0: 9, 1: 1, 2: "nine"}))
    assert log.load(Part.ROWS, given) == [given]
    log.load(Part.END)
    (found,) = log.event(delete({0: 9}, {0: 1}))
    assert values(found) == [([9, 1, "nine"], None), ([1, 10, "one"], None)]
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(delete({0: 2}))


def test_a_load_begins_with_the_defaults_of_the_definition_that_it_brings(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE.replace("DEFAULT 5", "DEFAULT 6"), {}))
    (found,) = log.event(insert({0: 2}))
    assert values(found) == [(None, [2, 6, "d"])]
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]  # of the same columns, so its rows are known
    log.close()
    log.open()
    (found,) = log.event(insert({0: 3}))
    assert values(found) == [(None, [3, 6, "d"])]


def test_a_load_that_brings_other_columns_begins_without_rows(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE[:-1] + ", n INT DEFAULT 3)", {}))
    prefix = log.completion.tables.entry(NAME).prefix
    assert list(log.completion.versions.rows(prefix)) == []
    layout = replace(LAYOUT, columns=(*LAYOUT.columns, Column("n", "int")))
    (found,) = log.event(rows(Action.INSERT, (None, {0: 2}), layout=layout))
    assert values(found) == [(None, [2, 5, "d", 3])]
    assert len(list(log.completion.versions.rows(prefix))) == 1  # the definition is not one of the rows


def test_a_load_that_brings_another_key_begins_without_rows(log: Log) -> None:
    create = CREATE.replace("id INT NOT NULL PRIMARY KEY, a INT", "id INT NOT NULL, a INT NOT NULL")
    log.ddl("DROP TABLE shop.t")
    log.ddl(create[:-1] + ", PRIMARY KEY (id))")
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", create[:-1] + ", PRIMARY KEY (a))", {}))
    assert list(log.completion.versions.rows(log.completion.tables.entry(NAME).prefix)) == []
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"}), layout=replace(LAYOUT, key=(1,))))
    assert not again(log)  # its rows are those of the key that it brought
    (found,) = log.event(rows(Action.UPDATE, ({1: 10}, {2: "uno"}), layout=replace(LAYOUT, key=(1,))))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]


def test_rows_that_a_load_has_not_brought_are_known_again_after_going_back_over_its_end(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # forgets what it has in memory
    log.load(Part.END)
    log.seqno -= 1
    log.completion.go_back(Seqno(log.seqno - 1))
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]


def again(log: Log) -> bool:
    return log.completion.tables.find_again(NAME, Seqno(log.seqno))


def test_a_row_that_changes_its_key_before_its_load_brings_it_is_deleted_and_read_again(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"})))
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.action is Action.UPDATE
    assert not again(log)
    moved = update(({0: 9}, {0: 0}))  # the load has passed 0
    (found,) = log.event(moved)
    gone = delete({0: 9})
    assert (found.action, found.data, list(found.ends), found.before, found.after, found.logged) == (
        gone.action, gone.data, list(gone.ends), gone.before, b"", moved.data,
    )  # fmt: skip
    log.completion.close()
    log.open()
    assert again(log)
    assert not again(log)
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 0, 1: 1, 2: "nine"})))
    log.load(Part.END)
    (found,) = log.event(update(({0: 0}, {1: 2})))
    assert values(found) == [([0, 1, "nine"], [0, 2, "nine"])]


def test_keys_of_rows_that_are_not_loaded_may_be_swapped(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    known = insert({0: 5, 1: 50, 2: "five"})
    found = log.event(known, update(({0: 7}, {0: -9}), ({0: 5}, {0: 7}), ({0: -9}, {0: 5})))
    first, second, third, fourth = found
    assert first is known
    assert [one.action for one in (second, third, fourth)] == [Action.DELETE, Action.UPDATE, Action.DELETE]
    assert values(third) == [([5, 50, "five"], [7, 50, "five"])]
    (found,) = log.event(update(({0: 7}, {1: 1})))
    assert values(found) == [([7, 50, "five"], [7, 1, "five"])]
    assert again(log)


def test_a_load_for_some_targets_leaves_changed_keys_to_the_others_and_names_the_reason(log: Log) -> None:
    for part in (Part.BEGIN, Part.END):
        loading = LoadEvent("l1", part, NAME, ("lake",)).metadata()
        log.event(*[Statement("shop", CREATE, {})] * (part is Part.BEGIN), kind=Kind.LOAD, **loading)
        if part is Part.BEGIN:
            (found,) = log.event(update(({0: 9}, {0: 0})))
            assert found.action is Action.UPDATE
            assert not again(log)
    with pytest.raises(Unsupported, match="changed the key of a row that was not known"):
        log.event(update(({0: 0}, {1: 1})))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}), load="l2")
    log.event(update(({0: 9}, {0: 0})))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}), load="l3")
    log.load(Part.END, load="l3")
    assert log.completion.tables.entry(NAME).reason == ""


@pytest.mark.parametrize("change", [delete({0: 9}), update(({0: 9}, {0: 0}))])
def test_a_store_that_reads_the_log_within_a_load_lets_the_table_be_read_again(log: Log, change: Rows) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"})))
    for one, lost in ((delete({0: 1}), False), (change, True)):
        end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
        begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
        log.completion.follow(TransactionBatch(begin, [one], end), Seqno(log.seqno), Epoch(1))
        log.seqno += 1
        assert again(log) is lost


def test_a_change_that_is_logged_as_a_statement_stops(log: Log) -> None:
    with pytest.raises(Unsupported, match="logged as a statement") as caught:
        log.event(Statement("shop", "UPDATE t SET a = 1", {}))
    assert "binlog_format" in caught.value.hint


def test_what_is_followed_from_the_log_never_stops(log: Log) -> None:
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    change = update(({0: 7}, {1: 1}))
    log.completion.follow(TransactionBatch(begin, [change], end), Seqno(log.seqno), Epoch(1))
    log.seqno += 1
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(delete({0: 7}))


def test_rows_that_are_read_ahead_are_completed_by_what_comes_between(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    changes = [update(({0: 1}, {1: 11})), update(({0: 1}, {2: "uno"}))]
    batches = [TransactionBatch(begin, [change], end) for change in changes]
    log.completion.versions.flush()
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # forgets what it has in memory
    log.completion.prefetch([*batches, "another item"])
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # and so what was read ahead
    found = [log.completion.complete(batch, Seqno(log.seqno + n), Epoch(1)) for n, batch in enumerate(batches)]
    assert [values(one.changes[0]) for one in found] == [
        [([1, 10, "one"], [1, 11, "one"])],
        [([1, 11, "one"], [1, 11, "uno"])],
    ]


def test_an_event_is_recognised_by_what_the_source_logged(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    changes = [update(({0: 1}, {1: 11})), update(({0: 1}, {1: 12})), delete({0: 1})]  # two are joined
    small = TransactionBatch(begin, [*changes], end)
    noted = [Statement("shop", "SAVEPOINT a", {}), *small.changes]
    for batch in (small, TransactionBatch(begin, noted, end)):  # the quick way to encode, and the other
        encoder = Encoder(
            service="s", source_id="db:1", partitions=1, limits=Limits(fragment=1 << 16, shard=1 << 20, message=1 << 20)
        )
        encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(log.seqno), tails={}, last_barrier=Seqno(-1)))
        logged = encoder.encode_logged(batch)[-1]
        encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(log.seqno), tails={}, last_barrier=Seqno(-1)))
        encoder.completion = log.completion
        completed = encoder.encode(batch)[-1]
        assert completed.finished.digest == logged.finished.digest
        assert (b"one" in completed.value, b"one" in logged.value) == (True, False)  # it is completed
        log.completion.go_back(Seqno(log.seqno - 1))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete", "move", "event", "back"]),
        st.integers(0, 5),
        st.integers(0, 5),
        st.sets(st.sampled_from([1, 2])),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_random_partial_changes_are_what_a_dict_says(steps: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    log = Log(tmp_path_factory.mktemp("s") / "store")
    log.ddl(CREATE)
    states: list[dict[int, list[Any]]] = [{}, {}]  # after each event
    now = dict(states[-1])
    changes: list[Rows] = []
    expected: list[Any] = []
    for number, (what, key, other, columns) in enumerate(steps):
        given = {1: number, 2: f"v{number}"}
        chosen = {at: given[at] for at in columns}
        if what == "insert" and key not in now:
            now[key] = [key, chosen.get(1, 5), chosen.get(2, "d")]
            changes.append(insert({0: key, **chosen}))
            expected.append((None, now[key]))
        elif what == "update" and key in now and chosen:
            after = [key, chosen.get(1, now[key][1]), chosen.get(2, now[key][2])]
            changes.append(update(({0: key}, chosen)))
            expected.append((now[key], after))
            now[key] = after
        elif what == "move" and key in now and other not in now:
            after = [other, chosen.get(1, now[key][1]), chosen.get(2, now[key][2])]
            changes.append(update(({0: key}, {0: other, **chosen})))
            expected.append((now.pop(key), after))
            now[other] = after
        elif what == "delete" and key in now:
            changes.append(delete({0: key}))
            expected.append((now.pop(key), None))
        elif what == "event":
            found = log.event(*changes)
            assert [one for change in found for one in values(change)] == expected
            states.append({at: list(row) for at, row in now.items()})
            changes, expected = [], []
        elif what == "back":
            back = min(key, len(states) - 2)
            del states[len(states) - back :]
            log.seqno = len(states) - 1
            log.completion.go_back(Seqno(log.seqno - 1))
            now = {at: list(row) for at, row in states[-1].items()}
            changes, expected = [], []
    log.completion.close()


def test_rows_that_were_read_ahead_under_another_name_are_read_again(log: Log) -> None:
    """Tables are swapped between transactions that were read together; the log's tables are the same objects."""
    other = replace(LAYOUT, name=TableName("shop", "n"))
    log.ddl(CREATE.replace("TABLE t", "TABLE n").replace("TABLE shop.t", "TABLE shop.n"))
    log.event(insert({0: 1, 1: 10, 2: "old"}))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 20, 2: "new"}), layout=other))
    log.completion.close()
    log.open()
    log.event(insert({0: 2, 1: 1, 2: "x"}))  # so that the table is known
    after = update(({0: 1}, {1: 30}))
    log.completion.prefetch([TransactionBatch(None, [after], None)])
    log.ddl("RENAME TABLE shop.t TO shop.o, shop.n TO shop.t")
    (found,) = log.event(after)
    assert values(found) == [([1, 20, "new"], [1, 30, "new"])]


def filtered(*captured: dict[str, Any]) -> list[EpochRecord]:
    """An epoch for each of the filters."""
    return [
        replace(made, capture=capture_of(Source.model_validate({"filters": filters})))
        for made, filters in zip(epochs(*range(len(captured))), captured, strict=True)
    ]


MASK = {"tables": [{"match": ["shop.t"], "mask": {"v": {"fixed": "x"}}}]}


@pytest.fixture
def masked(tmp_path: Path) -> Iterator[Log]:
    """Two tables; the epochs 2 to 4 mask a column, leave a table out, and mask nothing again."""
    made = Log(tmp_path / "store", epochs=filtered({}, MASK, {"ignore": ["shop.t"]}, {}))
    for name in ("t", "n"):
        made.ddl(CREATE.replace("shop.t", f"shop.{name}"))
        layout = replace(LAYOUT, name=TableName("shop", name))
        made.event(rows(Action.INSERT, (None, {0: 1, 1: 10, 2: "clear"}), layout=layout))
    yield made
    made.close()


def test_rows_from_before_another_rule_are_not_known(masked: Log, caplog: pytest.LogCaptureFixture) -> None:
    masked.epoch = 2
    other = rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=replace(LAYOUT, name=TableName("shop", "n")))
    (found,) = masked.event(other)
    assert values(found) == [([1, 10, "clear"], [1, 11, "clear"])]  # its table has no rule
    assert [record.__dict__["table"] for record in caplog.records] == [NAME]
    assert "thl load brings them back" in caplog.text
    with pytest.raises(Unsupported, match="publish it otherwise since event 1"):
        masked.event(update(({0: 1}, {1: 11})))
    masked.completion.go_back(Seqno(masked.seqno - 1))
    masked.event(rows(Action.UPDATE, ({0: 1, 1: 10, 2: "x"}, {0: 1, 1: 12, 2: "x"})))  # whole, by the new rule
    (found,) = masked.event(update(({0: 1}, {1: 13})))
    assert values(found) == [([1, 12, "x"], [1, 13, "x"])]
    (found,) = masked.event(insert({0: 2}))
    assert values(found) == [(None, [2, 5, "d"])]  # its defaults are known


def test_rows_from_before_an_epoch_without_events_that_left_their_table_out_are_not_known(masked: Log) -> None:
    masked.epoch = 4
    with pytest.raises(Unsupported, match="does not know the row"):
        masked.event(update(({0: 1}, {1: 11})))


def test_another_rule_counts_again_after_going_back_over_it(masked: Log) -> None:
    masked.epoch = 2
    for _ in range(2):
        masked.completion.enter(Epoch(2), Seqno(masked.seqno))
        assert not list(masked.completion.versions.rows(masked.completion.tables.entry(NAME).prefix))
        masked.completion.go_back(Seqno(masked.seqno - 1))
    masked.event()
    masked.completion.go_back(Seqno(masked.seqno - 2))
    masked.seqno -= 1
    masked.epoch = 1
    (found,) = masked.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "clear"], [1, 11, "clear"])]
    masked.epoch = 2
    masked.event(kind=Kind.HEARTBEAT)
    with pytest.raises(Unsupported, match="does not know the row"):
        masked.event(update(({0: 1}, {1: 11})))


@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.VOID, None])
def test_another_rule_counts_in_events_that_are_read_from_the_log(masked: Log, outcome: Outcome | None) -> None:
    end = None if outcome is None else TransactionEnd(SourcePosition("f", 9), 0, outcome)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    if end is None:  # a trapped event
        masked.completion.pass_over(Seqno(masked.seqno), Epoch(2))
    else:
        masked.completion.follow(TransactionBatch(begin, [], end), Seqno(masked.seqno), Epoch(2))
    masked.seqno += 1
    masked.close()
    masked.open()
    masked.epoch = 2
    with pytest.raises(Unsupported, match="publish it otherwise"):
        masked.event(update(({0: 1}, {1: 11})))


def test_a_load_that_goes_on_under_another_rule_reads_its_table_once_more(masked: Log) -> None:
    masked.load(Part.BEGIN, Statement("shop", CREATE, {}))
    masked.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "clear"})))
    masked.epoch = 2
    masked.event()
    assert again(masked)
    assert not again(masked)
    masked.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "x"})))
    masked.load(Part.END)
    (found,) = masked.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "x"], [1, 11, "x"])]


REDEFINED = [
    Statement("shop", "ALTER TABLE t SOMETHING THAT IS NOT UNDERSTOOD", {}),
    Statement("shop", "ALTER TABLE t MODIFY id VARCHAR(9) NOT NULL", {}),
    Statement("shop", "ALTER TABLE t ADD COLUMN late INT", {}),
]


@pytest.mark.parametrize("change", REDEFINED)
def test_a_row_that_its_load_has_to_read_once_more_stays_so_after_a_definition(log: Log, change: Statement) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    (found,) = log.event(update(({0: 9}, {0: 0})))  # the load may have passed 0
    assert found.action is Action.DELETE
    log.event(change, kind=Kind.DDL)
    assert again(log)


def test_a_row_that_its_load_has_to_read_once_more_stays_so_under_other_columns(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.event(update(({0: 9}, {0: 0})))
    layout = replace(LAYOUT, columns=(*LAYOUT.columns, Column("late", "int")))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 1, 2: "x", 3: 1}), layout=layout))
    assert again(log)


def test_a_load_whose_rows_the_store_drops_leaves_none_unknown_in_silence(log: Log) -> None:
    """It is for one target, so it does not read the table once more."""
    for part in (Part.BEGIN, Part.END):
        loading = LoadEvent("l1", part, NAME, ("lake",)).metadata()
        log.event(*[Statement("shop", CREATE, {})] * (part is Part.BEGIN), kind=Kind.LOAD, **loading)
        if part is Part.BEGIN:
            log.event(Statement("shop", "ALTER TABLE t MODIFY id VARCHAR(9) NOT NULL", {}), kind=Kind.DDL)
    assert "may change values" in log.completion.tables.entry(NAME).reason


def known(*, asked: str = "l1", cancel: bool = False, state: LoadState | None = LoadState.LOADING) -> KnownLoads:
    """The loads of a producer: one of the table that was asked for, and the state of the load l1."""
    requests = {NAME: LoadRequest(table=NAME, load=asked, asked_at=1, asked_by="me", cancel=cancel)}
    states = {NAME: TableLoad(table=NAME, load="l1", state=state, begin=Seqno(1), last=Seqno(1))} if state else {}
    made = KnownLoads("shop", SystemClock())
    made.restore(ControlState(LogRecord(LOG, 1), None, (), load_requests=requests, loads=states))
    return made


@pytest.mark.parametrize("state", [LoadState.CANCELLED, LoadState.STOPPED])
def test_a_load_that_has_no_end_leaves_no_image_partial(log: Log, state: LoadState) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.loads = known()
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.after
    log.close()
    log.open()
    log.completion.loads = known(state=state)
    with pytest.raises(Unsupported, match="its load was cancelled, or has stopped"):
        log.event(update(({0: 9}, {1: 1})))


def test_a_load_that_is_asked_for_leaves_images_partial_before_its_first_event(log: Log) -> None:
    log.completion.loads = known(asked="l2", state=LoadState.CANCELLED)
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.after
    log.completion.loads = known(asked="l2", cancel=True, state=None)
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 9}, {1: 1})))


def test_what_is_only_in_memory_is_written_after_some_time(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    for now, written in ((0.0, True), (1.0, False), (FLUSH_SECONDS + 1, True)):
        log.completion.rest(now)
        found = log.completion.versions._database.get(STATE)
        assert found is not None
        assert (StoreState.from_json(found).seqno == log.seqno - 1) is written
        log.event(insert({0: 2 + int(now), 1: 10, 2: "one"}))


BARE = TableLayout(TableName("shop", "bare"), LAYOUT.columns, (0,))
BARE_ROW = rows(Action.INSERT, (None, {0: 7, 2: "x"}), layout=BARE)


def awaited(state: LoadState | None = None) -> KnownLoads:
    made = known(state=state)
    made.ask(LoadRequest(table=BARE.name, load="l1", asked_at=1, asked_by="me"))
    return made


def test_an_insert_without_a_known_default_waits_for_the_load_that_is_asked_for(log: Log) -> None:
    """Else the load could never begin: what the log has before it stops the producer each time."""
    log.completion.loads = known(asked="else")
    with pytest.raises(Unsupported, match="its default is not known"):
        log.event(BARE_ROW)
    log.completion.go_back(Seqno(log.seqno - 1))
    log.completion.loads = awaited()
    (found,) = log.event(BARE_ROW)
    assert (found.action, found.data, found.before, found.after) == (Action.INSERT, BARE_ROW.data, b"", b"\x05")
    (found,) = log.event(rows(Action.UPDATE, ({0: 7}, {1: 1}), layout=BARE))
    assert found.after  # the row is not known
    assert log.completion.tables.entry(BARE.name).reason == "the log begins without its rows"


def test_an_insert_without_a_known_default_takes_the_place_of_a_row_whose_end_the_store_has_not_seen(log: Log) -> None:
    """As a cascade's that was not logged."""
    log.completion.loads = awaited()
    log.event(rows(Action.INSERT, (None, {0: 7, 1: 70, 2: "before"}), layout=BARE))
    log.event(BARE_ROW)
    (found,) = log.event(rows(Action.UPDATE, ({0: 7}, {1: 1}), layout=BARE))
    assert found.after


def test_an_insert_without_a_known_default_is_read_again_by_the_load_that_goes_on(log: Log) -> None:
    begun = LoadEvent("l1", Part.BEGIN, BARE.name).metadata()
    log.event(Statement("shop", CREATE.replace("shop.t", "shop.bare").replace(" DEFAULT 5", " NOT NULL"), {}),
              kind=Kind.LOAD, **begun)  # fmt: skip
    log.event(Statement("shop", "ALTER TABLE bare SOMETHING THAT IS NOT UNDERSTOOD", {}), kind=Kind.DDL)
    log.completion.tables.find_again(BARE.name, Seqno(log.seqno))
    log.completion.loads = awaited(LoadState.LOADING)
    (found,) = log.event(BARE_ROW)
    gone = rows(Action.DELETE, ({0: 7, 2: "x"}, None), layout=BARE)
    assert (found.action, found.data, found.before, found.after) == (gone.action, gone.data, gone.before, b"")
    assert log.completion.tables.find_again(BARE.name, Seqno(log.seqno))


def test_a_table_that_was_left_out_has_no_defaults_from_before(masked: Log) -> None:
    """Its definition may have changed unseen."""
    keyless = TableLayout(TableName("shop", "t2"), LAYOUT.columns)
    masked.completion._history = FilterHistory(filtered({}, {}, {"ignore": ["shop.t", "shop.t2"]}, {}))
    masked.ddl(CREATE.replace("shop.t", "shop.t2").replace(" PRIMARY KEY", ""))
    masked.epoch = 4
    with pytest.raises(Unsupported, match="its default is not known"):
        masked.event(insert({0: 2}))
    masked.completion.go_back(Seqno(masked.seqno - 1))
    with pytest.raises(Unsupported, match="its default is not known"):
        masked.event(rows(Action.INSERT, (None, {0: 2}), layout=keyless))


def test_a_new_column_has_its_value_as_a_rule_publishes_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "store")
    rules = {"tables": [{"match": ["shop.t"], "mask": {"secret*": {"fixed": "***"}}}]}
    log.completion.close()
    database = Database(log.folder, cache_bytes=1 << 20)
    versions = Versions(database, LOG, horizon=1_000_000, cache_bytes=1 << 20)
    filters = Source.model_validate({"filters": rules}).filters
    log.completion = EventCompleter(versions, filters=filters)
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl(
        "ALTER TABLE shop.t ADD COLUMN secret VARCHAR(9) CHARSET utf8mb4 DEFAULT 'clear', ADD COLUMN n INT DEFAULT 3"
    )
    layout = TableLayout(
        NAME, (*LAYOUT.columns, Column("secret", "varchar(9)", charset="utf8mb4"), Column("n", "int")), (0,)
    )
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=layout))
    assert values(found) == [([1, 10, "one", "***", 3], [1, 11, "one", "***", 3])]
    log.close()


def test_rows_of_an_xa_transaction_that_was_prepared_under_other_filters_are_not_known(masked: Log) -> None:
    """Read from the log of a time without a store, which let filters change meanwhile."""
    masked.epoch = 2
    masked.event(insert({0: 3, 1: 1, 2: "x"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {"xa_prepared": "f:1"})
    masked.completion.follow(
        TransactionBatch(begin, [insert({0: 4, 1: 1, 2: "clear"})], end), Seqno(masked.seqno), Epoch(2)
    )
    masked.seqno += 1
    with pytest.raises(Unsupported, match=r"prepared under other source\.filters"):
        masked.event(update(({0: 4}, {1: 2})))


def follow(log: Log, *changes: Rows | Statement, outcome: Outcome | None = Outcome.COMMIT, first: bool = True) -> None:
    """Follow a batch that the log has."""
    end = None if outcome is None else TransactionEnd(SourcePosition("f", 9), 0, outcome)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {}) if first else None
    log.completion.follow(TransactionBatch(begin, list(changes), end), Seqno(log.seqno), Epoch(log.epoch))
    log.seqno += end is not None


def test_what_the_log_has_of_an_event_that_was_given_up_changes_no_row(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    follow(log, update(({0: 1}, {1: 11})), outcome=None)
    follow(log, outcome=Outcome.VOID, first=False)
    assert log.completion.versions.seqno == log.seqno - 1
    (found,) = log.event(update(({0: 1}, {2: "uno"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]


def test_rows_that_a_statement_in_the_log_may_have_changed_are_not_known(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    follow(log, Statement("shop", "UPDATE t SET a = 1", {}))
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))


def test_an_initial_load_begins_without_rows(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.event(snapshot="begin")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))


def test_a_row_that_a_repair_has_not_found_is_not_known(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    gone = delete({0: 1})
    assert log.load(Part.ROWS, gone) == [gone]
    (found,) = log.event(delete({0: 2}))
    assert values(found) == [([2, 20, "two"], None)]
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))


@pytest.mark.parametrize("sql", ["DROP TABLE shop.t", "TRUNCATE TABLE shop.t"])
def test_rows_of_a_table_that_ends_are_deleted_one_day(log: Log, sql: str) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    prefix = log.completion.tables.entry(NAME).prefix
    log.ddl(sql)
    assert [key for key, _ in log.completion.versions.rows(ENDED)] == [ENDED + prefix]


def test_another_rule_counts_for_rows_that_are_known_by_a_unique_key(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", epochs=filtered({}, MASK))
    log.ddl(CREATE.replace("PRIMARY KEY", "UNIQUE"))
    log.event(insert({0: 1, 1: 10, 2: "clear"}))
    log.epoch = 2
    with pytest.raises(Unsupported, match="publish it otherwise"):
        log.event(update(({0: 1}, {1: 11})))
    log.close()
