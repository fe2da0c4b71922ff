"""Definitions and rows that are not as they were written are damage, though their sums are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connector.errors import ConnectorError, RecordsDamaged, Unsupported
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.producer.records.conversion import split
from connector.producer.records.tables import DEFINITION, NUMBERS, TABLE
from connector.records.database import Database
from connector.records.stored import content_of, make_version
from tests.unit.producer.records.event_log import CREATE, LAYOUT, Log, insert, rows, update


def changed(store: Path, prefix: bytes, change: Callable[[Any], Any]) -> None:
    """Change the last JSON document whose key begins so."""
    database = Database(store, cache_bytes=1 << 20)
    *_, (key, version) = database.items(prefix, prefix + b"\xff")
    made = change(json.loads(content_of(version)))
    content = made if isinstance(made, bytes) else json.dumps(made).encode()
    database.write([(key, make_version(1, 0, content))])
    database.close()


@pytest.mark.parametrize(
    ("prefix", "change"),
    [
        (TABLE, lambda _: b"{"),
        (TABLE, lambda _: b"\xff"),
        (TABLE, lambda _: []),
        (TABLE, lambda found: {**found, "name": ["shop"]}),
        (TABLE, lambda found: {**found, "table": "{}"}),
        (TABLE, lambda found: {**found, "table": json.dumps({**json.loads(found["table"]), "key": ["z"]})}),
        (TABLE, lambda found: {**found, "keyed": 1}),
        (DEFINITION, lambda _: b"no json"),
        (DEFINITION, lambda found: {**found, "columns": [[0]]}),
        (DEFINITION, lambda found: {**found, "columns": [[3, ""]]}),  # there were three
        (DEFINITION, lambda found: {**found, "before": 2}),  # itself: its rows would be converted without an end
        (NUMBERS, lambda _: [1]),
    ],
)
def test_definitions_that_are_not_as_they_were_written_are_damage(
    tmp_path: Path, prefix: bytes, change: Callable[[Any], Any]
) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE)
    log.ddl("ALTER TABLE shop.t DROP COLUMN a")  # definition 2
    log.close()
    changed(tmp_path / "s", prefix, change)
    with pytest.raises(RecordsDamaged, match="definitions") as caught:
        log.open()
    assert "thl records rebuild" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"\x06\x01",  # a text of -1 bytes: the same bytes again and again
        b"\x06\x03\x00",
        b"\x06\x04a",  # cut off
        b"\x04\x00",
        b"\x02\x80",
        b"\x03",
        b"\x0a",
        b"\x00\x00",  # two values
        b"",
    ],
)
@pytest.mark.timeout(30)  # not without an end
def test_bytes_that_are_no_row_end_with_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"value|bytes|number"):
        split(content, 1)


def test_a_version_that_is_no_row_is_damage_where_it_is_converted_too(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.t ADD COLUMN n INT DEFAULT 7")
    key = log.completion.tables.entry(LAYOUT.name).prefix + b"\x02\x02"
    log.completion.versions.known[key] = make_version(1, 1, b"\x02\x02\x06\x01\x00")
    layout = TableLayout(LAYOUT.name, (*LAYOUT.columns, Column("n", "int")), (0,))
    with pytest.raises(RecordsDamaged, match="cannot be read"):
        log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=layout))
    log.close()


@pytest.mark.parametrize(
    "content",
    [
        b"\x02\x02\x02\x14\x06\x06one\x00",  # one value more than columns
        b"\x02\x02\x02\x14",
        b"\x02\x02\x02\x14\x06\x06on",  # cut off
        b"\x02\x02\x02\x14\x06\x01",  # a text of -1 bytes
        b"\x02\x02\x02\x14\x0a",
        b"\x02\x02\x04\x00\x06\x06one",  # a part of a double
    ],
)
def test_a_version_that_is_no_row_is_damage(tmp_path: Path, content: bytes) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    key = log.completion.tables.entry(LAYOUT.name).prefix + b"\x02\x02"
    known = log.completion.versions.known
    assert known[key] == make_version(1, 1, b"\x02\x02\x02\x14\x06\x06one")
    known[key] = make_version(1, 1, content)
    with pytest.raises(RecordsDamaged, match="cannot be read"):
        log.event(update(({0: 1}, {1: 11})))
    log.close()


@pytest.mark.parametrize("version", [b"", make_version(1, 1, b"")[:-1]])
def test_a_version_that_is_shorter_than_its_header_is_damage(tmp_path: Path, version: bytes) -> None:
    """Not a row that is not known, which may stay partial."""
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    key = log.completion.tables.entry(LAYOUT.name).prefix + b"\x02\x02"
    log.completion.versions.known[key] = version
    with pytest.raises(RecordsDamaged, match="a version without a header") as caught:
        log.event(update(({0: 1}, {1: 11})))
    assert "thl records rebuild" in caught.value.hint
    assert (caught.value.where["table"], caught.value.where["seqno"]) == (LAYOUT.name, 2)
    log.close()


@pytest.mark.parametrize("definition", [0, 2, 4, 1 << 31])
def test_a_version_of_a_definition_that_its_table_has_not_had_is_damage(tmp_path: Path, definition: int) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.ddl(CREATE.replace("shop.t", "shop.n"))  # definition 2
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.t ADD COLUMN n INT DEFAULT 7")  # 3
    key = log.completion.tables.entry(LAYOUT.name).prefix + b"\x02\x02"
    log.completion.versions.known[key] = make_version(1, definition, b"\x02\x02\x02\x14\x06\x06one")
    layout = TableLayout(LAYOUT.name, (*LAYOUT.columns, Column("n", "int")), (0,))
    with pytest.raises(RecordsDamaged, match="that its table has not had"):
        log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=layout))
    log.close()


def test_bytes_after_the_last_row_of_a_change_are_not_passed_over(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE)
    given = insert({0: 1, 1: 10, 2: "one"})
    with pytest.raises(RecordsDamaged, match="bytes after the last row"):
        log.event(Rows(LAYOUT, given.action, given.data + b"\0", given.ends))
    log.close()


def refused(log: Log, *changes: Any) -> ConnectorError:
    with pytest.raises(Unsupported) as caught:
        log.event(*changes)
    log.close()
    return caught.value


def test_an_error_names_a_row_by_numbers_and_its_event_in_the_sources_log(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    columns = (Column("n", "int", nullable=False), Column("mail", "varchar(20)", charset="utf8mb4"), Column("a", "int"))
    layout = TableLayout(TableName("shop", "m"), columns, (0, 1))
    error = refused(log, rows(Action.UPDATE, ({0: 7, 1: "me@secret.example"}, {2: 1}), layout=layout))
    assert error.where["key"] == "n=7, mail=…"
    assert (error.where["file"], error.where["pos"]) == ("f", 4)
    assert "secret" not in str(error)


def test_an_error_does_not_show_the_values_of_a_statement(tmp_path: Path) -> None:
    error = refused(Log(tmp_path / "s"), Statement("shop", "UPDATE t SET v = 'secret'", {}))
    assert (error.where["schema"], error.where["file"], error.where["pos"]) == ("shop", "f", 4)
    assert "secret" not in str(error)
