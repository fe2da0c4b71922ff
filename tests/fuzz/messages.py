"""The initial messages of the fuzzer of the log's readers, and its mutations, with right checksums."""

from __future__ import annotations

import json
import random
import struct
import zlib
from array import array

from connector.kafka.prepared_records import closing_record
from connector.kafka.records import control_message, definition_messages, position_message
from connector.log.epochs.control import EpochRecord, LogRecord, OfflineRequest, PartitionMap
from connector.log.epochs.fork import Forked, Range
from connector.log.format.shard_rule import ShardRule
from connector.log.ids import Action, Epoch, LogId, Seqno
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.pending import Pending, PendingChecksum
from connector.log.transaction.position import Digest, Finished, Open, PositionRecord, SourcePosition
from connector.producer.encode.stored import messages as stored
from tests.support import fragments as made

LOG_ID = LogId("f" * 32)
CHECK = 4  # bytes of a checksum
OPENING = {0xC3: 10, 0x00: 5}  # by a message's first byte
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 0x3F, 0x40, 0x7F, 0x80, 0xFE, 0xFF)
LONGS = (0, -1, 1, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 20, 100)
WORDS = ("null", "-1", '""', "[]", "{}", "1e400", '"\\ud800"', "9" * 30, "true", "NaN", "[" * 3000, '{"a":' * 3000)
Record = tuple[str, bytes, bytes]


def zigzag(value: int) -> bytes:
    rest = ((value << 1) ^ (value >> 63)) & (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def message_seeds() -> list[bytes]:
    """Fragments of every kind, in both framings."""
    update = made.change("update", [([1, "a"], [1, "b"]), ([2, None], [3, 2.5])])
    wide = made.change(
        "insert",
        [(None, [n, b"\x00\xff", None, "é", 1.5]) for n in range(3)],
        columns=("a", "b", "c", "d", "e"),
        key=(),
    )
    partial = made.change("update", [([1], ["x"])], before_present=b"\x01", after_present=b"\x02")
    delete = made.change("delete", [([1, "a"], None)], table="keyless", key=())
    labels = {**made.column("e", "enum"), "labels": ["x", "y"], "charset": "utf8mb4"}
    enum = made.change("insert", [(None, ["x", 1])]) | {"columns": [labels, made.column("n")]}
    parts = made.in_parts(wide, 2)
    records = [
        made.record(0, [update, delete]),
        made.record(0, [wide, partial, enum], metadata={"snapshot": "first", "heartbeat": "h"}),
        made.record(0, [made.statement("CREATE TABLE t (a INT)", options={"sql_mode": "1"})], kind="ddl"),
        made.record(0, [update], last_frag=False),
        made.record(0, [parts[0]], last_frag=False),
        made.record(0, [parts[1]], fragno=1),
        made.marker(2, 0, -1, log_id=LOG_ID),
        made.marker(2, 0, -1, log_id=LOG_ID) | {"metadata": {"log_id": LOG_ID, "last_finished": "-1", "trapped": "u:1",
                                                             "trapped_events": "3-5,7", "gtid_set": "u:1-5"}},
        made.record(0, outcome="void", gtid=None, shard="#UNKNOWN"),
    ]  # fmt: skip
    return [frame(one) for one in records for frame in (made.encoded, made.registered)]


def record_seeds() -> list[Record]:
    """(topic, key, value) of every record of the other topics."""
    place = SourcePosition("binlog.000001", 4)
    columns = (Column("id", "int", True, "", (), False), Column("e", "enum", False, "utf8mb4", ("x", "y"), True))
    layout = TableLayout(TableName("shop", "t"), columns, (0,))
    finished = Finished(
        seqno=Seqno(5),
        epoch=Epoch(2),
        event_id="binlog.000001:0000000000000100;7",
        gtid="u:5",
        digest=Digest(1, 2, 3),
        start=place,
    )
    position = PositionRecord(
        finished=finished,
        resume=place,
        gtid_set="u:1-5",
        open=Open(Seqno(6), 1, 0),
        tails={0: Seqno(5)},
        last_barrier=Seqno(3),
        snapshot=False,
        server_uuid="uuid",
        prepared=PendingChecksum(1, 7),
    )
    epoch = EpochRecord(
        epoch=Epoch(2),
        first_seqno=Seqno(0),
        source_id="h:1",
        server_uuid="u",
        started=1,
        reason="online",
        gtid_set="u:1",
        forked=Forked("u:1", (Range(Seqno(1), Seqno(2)),)),
        filters="f",
    )
    offline = OfflineRequest(epoch=Epoch(2), asked_at=1, asked_by="a@b", reason="")
    tables = Definitions({layout.name: TableDefinition(layout, "utf8mb4", "")}, {"shop": "utf8mb4"})
    partitions = PartitionMap(2, 3, ShardRule("table", (("a", "b"),)), (Seqno(4),))
    rows = Rows(layout, Action.INSERT, b"\x00\x02\x04\x02\x02\x06\x02x\x00", array("Q", [9]), b"", b"", "INSERT")
    pending = Pending(xid="X'61'", attempt="1:2", batches=1, messages=1, gtid="u:5", start=place, time=7)
    prepared = closing_record(pending, PendingChecksum(1, 0))
    assert prepared.value is not None
    control = [control_message(one) for one in (LogRecord(LOG_ID, 0), partitions, epoch, offline)]
    control += [(key, value) for key, value in definition_messages(tables) if value is not None]
    return [
        *(("control", *one) for one in control),
        ("position", *position_message(position)),
        ("prepared", prepared.key, prepared.value),
        *(("stored", b"", one) for one in stored([rows, Statement("shop", "CREATE TABLE t (a INT)", {"a": "b"})], 999)),
    ]


def changed(message: bytes, other: bytes, draw: random.Random) -> bytes:
    """A message with damage after its first fields and a right checksum."""
    at = OPENING[message[0]]
    return message[:at] + resealed(damaged(message[at:-CHECK], other[OPENING[other[0]] : -CHECK], draw))


def changed_record(record: Record, other: Record, draw: random.Random) -> Record:
    """A record with damaged bytes, or with another value in its JSON."""
    topic, key, value = record
    if topic == "stored":
        return topic, key, value[:1] + resealed(damaged(value[1:-CHECK], value[1:-CHECK], draw))
    if draw.random() < 0.1:
        key = damaged(key, other[1], draw)
    if draw.random() < 0.7:
        return topic, key, replaced(value, draw)
    return topic, key, damaged(value, other[2], draw)


def resealed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(CHECK, "big")


def damaged(data: bytes, other: bytes, draw: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.randrange(len(found) + 1)
        match draw.randrange(7):
            case 0 if found:
                found[at % len(found)] = draw.randrange(256)
            case 1 if found:
                found[at % len(found)] = draw.choice(NUMBERS)
            case 2:
                found[at : at + 1] = zigzag(draw.choice(LONGS))
            case 3:
                del found[at : at + draw.choice((1, 1, 2, 8, 1 << 20))]
            case 4:
                found[at:at] = found[at : at + draw.choice((1, 4, 16))]
            case 5:
                start = draw.randrange(len(other) + 1)
                found[at : at + 8] = other[start : start + draw.choice((1, 8, 64))]
            case _:
                found[at:at] = struct.pack("<q", draw.choice(LONGS))[: draw.choice((1, 2, 4, 8))]
    return bytes(found)


def replaced(value: bytes, draw: random.Random) -> bytes:
    """JSON with one value replaced."""
    places: list[str] = []
    marked = json.dumps(_numbered(json.loads(value), places))
    chosen = draw.choice(places)
    for place in places:
        mark, original = place.split(" ", 1)
        marked = marked.replace(f'"{mark}"', draw.choice(WORDS) if place == chosen else original, 1)
    return marked.encode(errors="replace")


def _numbered(value: object, places: list[str]) -> object:
    """Replace every value of the tree by a mark; `places` has each mark and its value."""
    if _has_more(value) and isinstance(value, dict):
        return {key: _numbered(item, places) for key, item in value.items()}
    if _has_more(value) and isinstance(value, list):
        return [_numbered(item, places) for item in value]
    mark = f"mark{len(places):04}"
    places.append(f"{mark} {json.dumps(value)}")
    return mark


def _has_more(value: object) -> bool:
    """True if a value contains others."""
    return isinstance(value, dict | list) and bool(value)
