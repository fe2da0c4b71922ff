"""Control and position records are read back as they were written; anything else is damage."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.source import Source
from connector.errors import LogDamaged, Unsupported
from connector.kafka.records import (
    control_message,
    control_state,
    definition_messages,
    position_message,
    position_record,
)
from connector.log.epochs.control import EpochRecord, LogRecord, OfflineRequest, PartitionMap
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.rules import Rule
from connector.log.transaction.definition import Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.pending import PendingChecksum
from connector.log.transaction.position import Digest, Finished, Open, PositionRecord, SourcePosition
from connector.mysql.transforms.filters import capture_of

numbers = st.integers(0, 2**62)
seqnos = st.builds(Seqno, numbers)
places = st.builds(SourcePosition, st.text(max_size=20), numbers)
finished = st.builds(
    Finished,
    seqno=seqnos,
    epoch=st.builds(Epoch, numbers),
    event_id=st.text(max_size=20),
    gtid=st.none() | st.text(max_size=20),
    digest=st.builds(Digest, numbers, numbers, st.integers(0, 2**32 - 1)),
    start=places,
)
positions = st.builds(
    PositionRecord,
    finished=st.none() | finished,
    resume=places,
    gtid_set=st.none() | st.text(max_size=50),
    open=st.none() | st.builds(Open, seqnos, st.integers(0, 2**31 - 1), st.integers(0, 1023)),
    tails=st.dictionaries(st.integers(0, 1023), st.integers(-1, 2**62).map(Seqno), max_size=5),
    last_barrier=st.integers(-1, 2**62).map(Seqno),
    snapshot=st.booleans(),
    prepared=st.builds(PendingChecksum, numbers, st.integers(0, 2**32 - 1)),
    created=st.integers(0, 2**32 - 1),
)
epochs = st.builds(
    EpochRecord,
    epoch=st.builds(Epoch, numbers),
    first_seqno=seqnos,
    source_id=st.text(max_size=20),
    server_uuid=st.text(max_size=20),
    started=numbers,
    reason=st.sampled_from(["online", "went back"]),
    gtid_set=st.none() | st.text(max_size=50),
)

NEW = ("published", "targets", "keys", "key_columns")  # what records of loads had not from the beginning


@given(positions)
def test_a_written_position_is_read_back_unchanged(position: PositionRecord) -> None:
    assert position_record(position_message(position)[1]) == position


@given(st.lists(epochs, unique_by=lambda record: record.epoch))
def test_a_written_control_topic_is_read_back_with_its_epochs_in_order(records: list[EpochRecord]) -> None:
    log = LogRecord(LogId("ab"), 5)
    partitions = PartitionMap(1, 3)
    state = control_state(control_message(record) for record in (log, partitions, *records))
    assert (state.log, state.partitions) == (log, partitions)
    assert state.epochs == tuple(sorted(records, key=lambda record: record.epoch))


def test_an_answer_replaces_the_request_to_go_offline() -> None:
    asked = OfflineRequest(epoch=Epoch(3), asked_at=5, asked_by="me@here", reason="ünlucky")
    answer = replace(asked, offline_at=6, seqno=41)
    assert control_state([control_message(asked)]).offline == asked
    assert control_state([control_message(asked), control_message(answer)]).offline == answer
    assert control_state([]).offline is None


@pytest.mark.parametrize("targets", [(), ("lake", "pond")])
@pytest.mark.parametrize("published", [None, ("pub", "sold")])
def test_written_loads_are_read_back_unchanged(targets: tuple[str, ...], published: tuple[str, str] | None) -> None:
    table = TableName("shop", "orders")
    asked = LoadRequest(table=table, load="l1", asked_at=5, asked_by="me@here", published=published, targets=targets)
    state = TableLoad(
        table=table,
        load="l1",
        state=LoadState.LOADING,
        load_identity=("now", "`id` int"),
        after=("7",),
        targets=targets,
    )
    found = control_state([control_message(asked), control_message(state)])
    assert (found.load_requests, found.loads) == ({table: asked}, {table: state})
    assert json.loads(control_message(state)[1])["key"] == ["now", "`id` int"]  # as earlier versions have it


def test_written_repair_is_read_back_unchanged() -> None:
    table = TableName("shop", "orders")
    keys, key = (("1", "é"), ("2", "")), ("`id` int  ", "`name` varchar utf8mb4 utf8mb4_bin")
    asked = LoadRequest(table=table, load="l1", asked_at=5, asked_by="me@here", keys=keys, key_columns=key)
    assert control_state([control_message(asked)]).load_requests == {table: asked}


def test_loads_of_earlier_producers_are_for_all_targets() -> None:
    table = TableName("shop", "orders")
    asked = LoadRequest(table=table, load="l1", asked_at=5, asked_by="me@here")
    state = TableLoad(table=table, load="l1", state=LoadState.LOADING)
    messages = []
    for key, value in map(control_message, (asked, state)):
        fields = json.loads(value or b"")
        messages.append((key, json.dumps({name: fields[name] for name in fields if name not in NEW}).encode()))
    found = control_state(messages)
    assert (found.load_requests, found.loads) == ({table: asked}, {table: state})


def test_a_later_record_of_a_key_replaces_the_earlier_one() -> None:
    key, value = control_message(PartitionMap(1, 3))
    newer = control_message(PartitionMap(2, 4))
    assert control_state([(key, value), newer]).partitions == PartitionMap(2, 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"log", b"{"),
        (b"log", b"{}"),
        (b"else", b"{}"),
        (b"offline", b"[]"),
        (b"offline", b'{"epoch": 1}'),
        (b"epoch:1", b'{"epoch": 1}'),
        (b"partitions", b"[]"),
    ],
)
def test_an_unknown_or_malformed_control_record_is_damage(key: bytes, value: bytes) -> None:
    with pytest.raises(LogDamaged) as refused:
        control_state([(key, value)])
    assert refused.value.where["key"] == key


@given(positions, st.data())
def test_a_position_with_a_part_missing_is_damage(position: PositionRecord, data: st.DataObject) -> None:
    record = json.loads(position_message(position)[1])
    del record[data.draw(st.sampled_from(sorted({*record} - {"created"})))]
    value = json.dumps(record).encode()
    with pytest.raises(LogDamaged) as refused:
        position_record(value)
    assert refused.value.where == {"rule": Rule.UNDECODABLE, "value": value[:200]}


@given(positions)
def test_a_position_of_an_older_producer_has_no_creation_time(position: PositionRecord) -> None:
    record = json.loads(position_message(position)[1])
    del record["created"]
    assert position_record(json.dumps(record).encode()) == replace(position, created=0)


names = st.builds(TableName, st.text(max_size=10), st.text(max_size=10))
columns = st.builds(
    Column,
    name=st.text(max_size=8),
    type=st.sampled_from(["int", "enum", "varchar(5)"]),
    unsigned=st.booleans(),
    charset=st.sampled_from(["", "latin1"]),
    labels=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    nullable=st.booleans(),
)


def a_table(name: TableName, of: list[Column], unknown: str) -> TableDefinition:
    return TableDefinition(TableLayout(name, tuple(of), tuple(range(len(of)))[:1]), "utf8mb4", unknown)


tables = st.dictionaries(names, st.tuples(st.lists(columns, max_size=4), st.text(max_size=9))).map(
    lambda found: {name: a_table(name, *parts) for name, parts in found.items()}
)
schemas = st.dictionaries(st.text(max_size=10), st.sampled_from(["latin1", "utf8mb4"]))


@given(tables, schemas, st.lists(st.tuples(tables, schemas, st.booleans()), max_size=4))
def test_written_tables_are_read_back_with_later_changes(
    begun: dict[TableName, TableDefinition],
    of: dict[str, str],
    steps: list[tuple[dict[TableName, TableDefinition], dict[str, str], bool]],
) -> None:
    known = Definitions(begun, of)
    messages = [*definition_messages(known)]
    for changed, also, gone in steps:
        change = Redefined(
            dict.fromkeys(known.tables) if gone else changed, dict.fromkeys(known.schemas) if gone else also
        )
        known = known.after(change)
        messages += definition_messages(change)

    assert control_state(messages).tables == known


def test_a_control_topic_without_tables_has_no_definitions() -> None:
    assert control_state([control_message(LogRecord(LogId("ab"), 5))]).tables is None


def test_an_epoch_with_its_capture_is_read_back() -> None:
    told = {
        "epoch": 1, "first_seqno": 0, "source_id": "db:3306", "server_uuid": "u", "started": 1, "reason": "online",
        "gtid_set": None, "capture": {"do": ["shop"], "lower_case_table_names": 0},
    }  # fmt: skip
    (epoch,) = control_state([(b"epoch:1", json.dumps(told).encode())]).epochs
    assert control_state([control_message(epoch)]).epochs == (epoch,)


def test_a_captured_source_is_read_back() -> None:
    epoch = EpochRecord(
        epoch=Epoch(1), first_seqno=Seqno(0), source_id="db:3306", server_uuid="u", started=1, reason="online",
        capture=capture_of(Source()),
    )  # fmt: skip
    assert control_state([control_message(epoch)]).epochs == (epoch,)


@given(epochs, positions)
def test_a_field_of_a_newer_version_is_ignored(epoch: EpochRecord, position: PositionRecord) -> None:
    asked = OfflineRequest(epoch=Epoch(3), asked_at=5, asked_by="me@here", reason="why")
    records = (LogRecord(LogId("ab"), 5), PartitionMap(1, 3), epoch, asked)
    state = control_state((key, newer(value)) for key, value in map(control_message, records))
    assert (state.log, state.partitions, *state.epochs, state.offline) == records
    assert position_record(newer(position_message(position)[1])) == position


def newer(value: bytes) -> bytes:
    return json.dumps(json.loads(value) | {"of_later": {"what": 1}}).encode()


@pytest.mark.parametrize("record", [(b"log", b'{"log_id":"ab","created":5,"format":2}'), (b"tables", b'{"format":2}')])
def test_a_record_of_a_newer_format_is_refused(record: tuple[bytes, bytes]) -> None:
    with pytest.raises(Unsupported) as raised:
        control_state([record])
    assert raised.value.where == {"key": record[0]}
    assert "upgrade" in raised.value.hint
