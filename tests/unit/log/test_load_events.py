"""Events of the load of a table: a schema of their own, and rows that are there whether they were or not."""

from __future__ import annotations

import io
import zlib
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from connector.consume.decoding import MessageDecoder
from connector.errors import LogDamaged
from connector.log.compact.compact import Compactor
from connector.log.compact.join import joined
from connector.log.compact.scan import Scanner
from connector.log.compact.without_rows import without_rows
from connector.log.format.fragment_reader import header_of
from connector.log.format.framing import FINGERPRINT, LOAD_FINGERPRINT
from connector.log.ids import UNKNOWN_SHARD, Action, Epoch, Kind, Outcome, Seqno
from connector.log.reading.event_range import is_plain
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.schema import fragment_schema, framing, load_schema, read_fragment
from connector.spark.source.changes import Changes
from tests.support.compact_model import decoded
from tests.support.fragments import (
    LOAD_PREFIX,
    LOAD_SCHEMA,
    PREFIX,
    batch,
    change,
    encoded,
    load_record,
    record,
    registered,
    scanned,
)

AT = "t-0@7"
READ = change("read", [(None, [1, "z"]), (None, [2, "y"])])


def nets(*events: dict[str, Any]) -> list[tuple[list[Any], list[Any], list[Any]]]:
    compactor = Compactor("t")
    for message in scanned([encoded(event) for event in events]):
        compactor.add(message)
    return [(decoded(net.inserts, 2), decoded(net.updates, 2), decoded(net.deletes, 2)) for net in compactor.drain()]


def test_schema_of_loads_differs_by_its_symbols_alone() -> None:
    def symbols(schema: Any, found: list[list[str]]) -> Any:
        if isinstance(schema, dict):
            if "symbols" in schema:
                found.append(schema["symbols"])
            return {key: symbols(value, found) for key, value in schema.items() if key not in ("symbols", "doc")}
        return [symbols(one, found) for one in schema] if isinstance(schema, list) else schema

    first: list[list[str]] = []
    second: list[list[str]] = []
    assert symbols(fragment_schema(), first) == symbols(load_schema(), second)
    assert [[*one, *more] for one, more in zip(first, (["load"], [], ["read"]), strict=True)] == second
    assert second[0] == [kind.name.lower() for kind in Kind]
    assert second[2] == [action.name.lower() for action in Action]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], ([], [(1, "z"), (2, "y")], [])),
        ([change("insert", [(None, [1, "a"])])], ([(1, "z")], [(2, "y")], [])),
        ([change("update", [([1, "a"], [1, "b"])])], ([], [(1, "z"), (2, "y")], [])),
        (
            [change("update", [([2, "a"], [1, "b"])]), change("insert", [(None, [2, "c"])])],
            ([(1, "z")], [(2, "y")], []),
        ),
    ],
)
def test_rows_that_a_load_reads_replace_what_events_before_made_of_them(
    before: list[dict[str, Any]], expected: tuple[list[Any], list[Any], list[Any]]
) -> None:
    ((inserts, updates, deletes),) = nets(*(record(n, [one]) for n, one in enumerate(before)), load_record(9, [READ]))
    assert (sorted(inserts), sorted(updates), sorted(deletes)) == expected


def test_later_events_change_the_rows_that_a_load_has_read() -> None:
    update, delete = change("update", [([1, "z"], [3, "x"])]), change("delete", [([2, "y"], None)])
    ((inserts, updates, deletes),) = nets(load_record(0, [READ]), record(1, [update]), record(2, [delete]))
    assert (inserts, updates, sorted(key for key, _ in deletes)) == ([(3, "x")], [], [1, 2])


def test_rows_of_a_load_that_other_events_have_deleted_contradict_the_log() -> None:
    with pytest.raises(LogDamaged, match="deleted"):
        nets(record(0, [change("delete", [([1, "a"], None)])]), load_record(1, [READ]))


def test_rows_of_a_load_join_net_changes_of_other_segments() -> None:
    def parts(*events: dict[str, Any]) -> list[Any]:
        compactor = Compactor("t")
        for message in scanned([encoded(event) for event in events]):
            compactor.add(message)
        return compactor.drain()

    first = parts(record(0, [change("insert", [(None, [1, "a"])])]))
    (net,) = joined([*first, *parts(load_record(1, [READ]))], "t")
    assert (decoded(net.inserts, 2), decoded(net.updates, 2)) == ([(1, "z")], [(2, "y")])


def test_partial_images_beside_rows_of_a_load_are_completed_by_them() -> None:
    partial = change("update", [([1], ["p"])], before_present=b"\1", after_present=b"\2")
    compactor = Compactor("t")
    for message in scanned(
        [encoded(record(0, [partial])), encoded(load_record(1, [READ])), encoded(record(2, [partial]))]
    ):
        compactor.add(message)
    (net,) = compactor.drain()
    assert sorted(decoded(net.updates, 2)) == [(1, "p"), (2, "y")]
    assert net.partial is not None
    assert len(net.partial) == 0


def test_a_read_row_outside_of_a_load_is_refused() -> None:
    out = io.BytesIO()
    schemaless_writer(out, LOAD_SCHEMA, record(0, [READ]))
    body = out.getvalue()[:-4]
    forged = PREFIX + body + zlib.crc32(body).to_bytes(4, "big")
    (message,) = scanned([forged])
    with pytest.raises(LogDamaged, match="outside of a load"):
        Compactor("t").add(message)
    with pytest.raises(LogDamaged):
        read_fragment(forged, AT)
    with pytest.raises(LogDamaged, match="outside of a load"):
        Changes("t").add(message, message.header, 0, 0)


@pytest.mark.parametrize("kind", ["transaction", "load"])
def test_kind_of_the_other_schema_is_refused(kind: str) -> None:
    value = encoded(load_record(0, [READ])) if kind == "load" else encoded(record(0, []))
    other = (PREFIX if kind == "load" else LOAD_PREFIX) + value[len(PREFIX) :]
    for read in (
        lambda: header_of(other, AT),
        lambda: Scanner("t").scan(batch([other])),
        lambda: read_fragment(other, AT),
    ):
        with pytest.raises(LogDamaged, match="kind that its schema does not have") as refused:
            read()
        assert refused.value.where["rule"] == "kind_of_another_schema"


def test_load_in_a_registrys_framing_is_read() -> None:
    value = registered(load_record(0, [READ]), LOAD_FINGERPRINT)
    assert header_of(value, AT).kind is Kind.LOAD
    assert next(iter(scanned([value]))).header.kind is Kind.LOAD
    with pytest.raises(LogDamaged, match="kind that its schema does not have"):
        Scanner("t").scan(batch([registered(load_record(0, [READ]), FINGERPRINT)]))


def test_consumers_get_the_rows_as_read() -> None:
    value = encoded(load_record(0, [READ]))
    decoder = MessageDecoder("t")
    assert decoder.header(value, AT).kind is Kind.LOAD
    (rows,) = decoder.changes([value], AT)
    assert rows.action is Action.READ  # type: ignore[union-attr]
    assert [row.after for row in rows.rows] == [{"id": 1, "v": "z"}, {"id": 2, "v": "y"}]  # type: ignore[union-attr]


def test_rows_of_a_load_stay_together_with_other_events_and_its_edges_do_not() -> None:
    events = [
        record(0, [change("insert", [(None, [5, "a"])])]),
        load_record(1, [READ]),
        load_record(2, [], part=Part.END, shard=UNKNOWN_SHARD),
    ]
    found = Scanner("t").scan(batch([encoded(event) for event in events]))
    assert [len(messages) for messages in found] == [2, 1]


@pytest.mark.parametrize("registry", [False, True])
def test_encoder_writes_loads_with_their_schema(registry: bool) -> None:
    encoder = Encoder(
        service="shop",
        source_id="db:3306",
        partitions=4,
        limits=Limits(fragment=1 << 16, shard=1 << 22, message=1 << 20),
        framing=framing(*((7, 8) if registry else ())),
    )
    encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=Seqno(-1)))
    layout = TableLayout(TableName("shop", "orders"), (Column("id", "bigint"),), (0,))
    place = SourcePosition("binlog.000001", 500)

    def event(part: Part, changes: list[Rows | Statement]) -> bytes:
        metadata = LoadEvent("l1", part, layout.name).metadata()
        begin = TransactionStart(1, 0, None, 0, 0, place, Kind.LOAD, metadata)
        (fragment,) = encoder.encode(TransactionBatch(begin, changes, TransactionEnd(place, 5, Outcome.COMMIT)))
        return fragment.value

    row = b"\0" + b"\2" + b"\2\2\x0a\0"
    begin = event(Part.BEGIN, [Statement("shop", "CREATE TABLE `orders` (id BIGINT PRIMARY KEY)")])
    rows = event(Part.ROWS, [Rows(layout, Action.READ, row, array("Q", [len(row)]))])
    end = event(Part.END, [])
    opening = b"\0" + (8).to_bytes(4, "big") if registry else LOAD_PREFIX
    for value, shard in ((begin, UNKNOWN_SHARD), (rows, "shop"), (end, UNKNOWN_SHARD)):
        assert value.startswith(opening)
        header = header_of(value, AT)
        assert (header.kind, header.shard) == (Kind.LOAD, shard)
        assert LoadEvent.of(header.metadata).table == layout.name
    assert read_fragment(rows, AT)["changes"][0]["rows"] == [{"before": None, "after": [5]}]
    assert [header_of(value, AT).last_barrier for value in (begin, rows, end)] == [-1, 0, 0]


@pytest.mark.parametrize("targets", [(), ("lake",), ("lake", "pond.2")])
def test_targets_of_a_load_are_in_its_metadata(targets: tuple[str, ...]) -> None:
    event = LoadEvent("l1", Part.ROWS, TableName("shop", "orders"), targets)
    assert LoadEvent.of(event.metadata()) == event


FOR_OTHERS = {None: False, "lake": False, "pond.2": False, "shelf": True, "lak": True, "": True}
"""Whether a load for `lake` and `pond.2` is for other targets than one."""


@pytest.mark.parametrize(("target", "others"), FOR_OTHERS.items())
def test_rows_for_some_targets_are_compacted_on_them_and_left_out_on_others(
    target: str | None, *, others: bool
) -> None:
    events = [
        record(0, [change("insert", [(None, [5, "a"])])]),
        load_record(1, [READ], targets=("lake", "pond.2")),
        record(2, [change("insert", [(None, [6, "b"])])]),
    ]
    (messages,) = Scanner("t", target=target).scan(batch([encoded(event) for event in events]))
    assert (messages.any_for_others, [messages.for_others(at) for at in range(3)]) == (others, [False, others, False])
    assert [message.for_others for message in messages] == [False, others, False]
    compactor = Compactor("t")
    assert compactor.add_range(messages, 0, 3, 1000, 1 << 20) == 3
    rows = [row for net in compactor.drain() for each in (net.inserts, net.updates) for row in decoded(each, 2)]
    assert sorted(key for key, _ in rows) == ([5, 6] if others else [1, 2, 5, 6])


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("target", [None, "lake", "shelf"])
def test_parts_of_a_load_for_others_but_its_beginning_are_in_ranges(part: Part, target: str | None) -> None:
    shard = "shop" if part is Part.ROWS else UNKNOWN_SHARD
    values = [encoded(record(0)), encoded(load_record(1, [READ], part=part, targets=("lake",), shard=shard))]
    found = Scanner("t", target=target).scan(batch(values))
    together = part is Part.ROWS if target != "shelf" else part is not Part.BEGIN
    assert len(found) == (1 if together else 2)
    assert is_plain(found[-1].header(len(found[-1]) - 1), target) is together


def test_unknown_part_of_a_load_for_others_is_in_no_range() -> None:
    unknown = load_record(1, [READ], targets=("lake",))
    unknown["metadata"] |= {"load_part": "another"}
    values = [encoded(record(0)), encoded(unknown)]
    assert [len(one) for one in Scanner("t", target="shelf").scan(batch(values))] == [1, 1]


@pytest.mark.parametrize("encode", [encoded, registered])
@pytest.mark.parametrize(("target", "others"), [one for one in FOR_OTHERS.items() if one[0] is not None])
def test_load_for_others_without_rows_has_its_header_alone(
    encode: Callable[[dict[str, Any]], bytes], target: str, *, others: bool
) -> None:
    value = encode(load_record(3, [READ], targets=("lake", "pond.2"), last_frag=False, rows=7))
    short = without_rows(value, target)
    assert (short is not None) is others
    if short is None:
        return
    assert header_of(short, AT) == header_of(value, AT)
    assert read_fragment(short, AT)["changes"] == []
    (messages,) = Scanner("t", target=target).scan(batch([short]))  # its checksum is right
    assert messages.for_others(0)
    assert without_rows(bytearray(value), target) == short
    assert without_rows(short, target) == short


@pytest.mark.parametrize(
    "value",
    [
        encoded(record(0, [change("insert", [(None, [5, "a"])])])),
        registered(record(0, [change("insert", [(None, [5, "a"])])])),
        encoded(load_record(0, [READ])),
        registered(load_record(0, [READ], targets=("lake",)), FINGERPRINT),
        b"",
        LOAD_PREFIX,
        b"no message",
    ],
)
def test_nothing_is_left_out_of_another_message(value: bytes) -> None:
    assert without_rows(value, "shelf") is None


@given(st.data())
def test_nothing_is_left_out_of_a_damaged_message(data: st.DataObject) -> None:
    good = encoded(load_record(0, [READ], targets=("lake",)))
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    assert without_rows(bytes(bad), "shelf") is None
    assert without_rows(good[: data.draw(st.integers(0, len(good) - 1))], "shelf") is None
