"""Messages of the log's topics through every reader; each ends with a result or a connector error."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

from connector.applier import undo
from connector.consume.assembly import Assembly, ConsumedMessage, WholeLog
from connector.consume.decoding import MessageDecoder
from connector.consume.fragments import Fragments
from connector.errors import ConnectorError
from connector.inspect.formats.printing import FragmentPart, Layout, View, log_printer
from connector.inspect.thl_events.decoding import body_of, chunks, fragment_of, header_of
from connector.inspect.thl_events.log import Listed
from connector.kafka.prepared_records import PreparedReader
from connector.kafka.records import control_state, position_record
from connector.log.compact.compact import Compactor
from connector.log.compact.metadata_columns import MetadataColumns, metadata_columns
from connector.log.compact.scan import Scanner
from connector.log.epochs.control import EpochRecord
from connector.log.epochs.history import History
from connector.log.format.first_fields import first_fields
from connector.log.format.row_parts import RowParts
from connector.log.ids import Epoch, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.transaction.position import TargetPosition
from connector.producer.encode.stored import BatchDecoder
from connector.spark.source.changes import Changes
from connector.spark.source.columns import arrow_schema
from tests.fuzz.messages import LOG_ID, Record
from tests.support.fragments import batch

TOPIC = "thl.s"
AT = f"{TOPIC}-0@0"
DECODER = MessageDecoder(TOPIC)
COLUMNS = metadata_columns((one, f"_{one}") for one in ("seqno", "gtid", "commit_time", "event_id", "server_id"))
EPOCHS = tuple(
    EpochRecord(epoch=Epoch(n), first_seqno=Seqno(0), source_id="db:3306", server_uuid="u", started=0, reason="online")
    for n in (1,)
)
BEGIN = TargetPosition(service="s", log_id=LOG_ID, seqno=Seqno(-1), epoch=Epoch(1), offsets={0: 0})
HISTORY = History(LOG_ID, EPOCHS, Seqno(0))
Reader = Callable[[bytes], object]


def scan(value: bytes) -> list[Any]:
    """Read a batch as Spark's tasks and the driver do."""
    return list(Scanner(TOPIC).scan(batch([value])))


def heads(value: bytes) -> object:
    return [(m.event_range(), m.gtids(0, len(m)), [(one.header, one.size) for one in m]) for m in scan(value)]


def statements(value: bytes) -> object:
    """Read the definitions as the applier does."""
    return [one.statements(TOPIC) for found in scan(value) for one in found]


def collapsed(columns: MetadataColumns | None, *, run: bool) -> Reader:
    def read(value: bytes) -> object:
        collapse, parts = Compactor(TOPIC, columns), RowParts(TOPIC)
        for found in scan(value):
            if run:
                collapse.add_range(found, 0, len(found), 1 << 40, 1 << 40)
                continue
            for one in found:
                whole = parts.whole(one)
                if whole is not None:
                    collapse.add(whole)
        return [(net.layout, len(net)) for net in collapse.drain()]

    return read


def spark_rows(value: bytes) -> object:
    changes = Changes(TOPIC, True)
    for found in scan(value):
        for one in found:
            changes.add(one, one.header, 0, 0)
    return changes.drain(arrow_schema(layout=True)).to_pylist()


def consumed(value: bytes) -> object:
    return [DECODER.header(value, AT), [str(change) for change in DECODER.changes([value], AT)]]


def assembled(value: bytes) -> object:
    """Read the whole log from this message as a consumer does."""
    sequencer: EventSequencer[Fragments, Any] = EventSequencer(
        topic=TOPIC, partitions=1, position=BEGIN, history=HISTORY
    )
    assembly = Assembly(WholeLog(sequencer, "s", LOG_ID), DECODER, TOPIC, 1 << 20)
    return [
        (list(map(str, event.changes)), event.commit_time) for event in assembly.accept(ConsumedMessage(0, 0, value))
    ]


def joined(value: bytes) -> object:
    one: ShardSequencer[bytes] = ShardSequencer(
        topic=TOPIC, log_id=LOG_ID, shards=("shop",), offsets={0: 0}, floor=Seqno(-1), tails={}, barrier=None
    )
    one.accept(DECODER.header(value, AT), 0, 0, value)
    return list(iter(one.next, None))


def listed(value: bytes) -> object:
    """Print it as `thl list` does, in every layout."""
    out = io.BytesIO()
    fragment = fragment_of(value, AT)
    whole = {**fragment, "changes": list(chunks(AT).whole(fragment["fragno"], fragment["changes"]))}
    for layout, part in VIEWS:
        printer = log_printer(View(layout=layout, part=part, specs=True), out)
        printer.show(Listed(TOPIC, 0, 0, whole, False))
        printer.flush()
    return out.getvalue()


VIEWS = [
    (Layout.JSON, FragmentPart.ALL),
    (Layout.JSON, FragmentPart.HEADERS),
    *((Layout.TUNGSTEN, part) for part in FragmentPart),
]


def undone(value: bytes) -> object:
    """Invert an event as `thl undo` does."""
    collapse = Compactor(TOPIC)
    scan(value)
    undo.compact_inverse(collapse, TOPIC, [value])
    return len(collapse.drain())


MESSAGE_READERS: dict[str, Reader] = {
    "heads": heads,
    "statements": statements,
    "collapse": collapsed(None, run=False),
    "collapse with columns": collapsed(COLUMNS, run=False),
    "collapse of a run": collapsed(COLUMNS, run=True),
    "spark": spark_rows,
    "consume": consumed,
    "assembly": assembled,
    "shards": joined,
    "list": listed,
    "undo": undone,
    "header": lambda value: header_of(value, AT),
    "body": lambda value: body_of(value, AT),
    "place": lambda value: first_fields(value, AT),
}


def read_message(value: bytes) -> Iterator[ConnectorError]:
    """Read a message with each reader; return their errors.

    Raises:
        AssertionError: an error does not say where.
    """
    for reader in MESSAGE_READERS.values():
        try:
            reader(value)
        except ConnectorError as error:
            assert "at" in error.where, (error, error.where)
            yield error


def read_record(record: Record) -> Iterator[ConnectorError]:
    """Read a record of another topic; return the errors."""
    topic, key, value = record
    try:
        match topic:
            case "control":
                control_state([(key, value)])
            case "position":
                position_record(value)
            case "prepared":
                found = PreparedReader()
                found.accept(0, key, value)
                found.state(1)
            case _:
                BatchDecoder().feed(value)
    except ConnectorError as error:
        yield error
