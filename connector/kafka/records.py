"""Control and position records as JSON.

Both topics are compacted and read to their ends at each start, so the records are easy to read by hand: one JSON
object under a key that names its subject.

A reader ignores fields that a newer version has added, so a version may only add fields that older readers can do
without. A change of meaning, or a field that must not be ignored, takes another `format`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from connector.errors import LogDamaged, Unsupported
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord, OfflineRequest, PartitionMap
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.format import checked
from connector.log.format.checked import WRONG
from connector.log.format.shard_rule import ShardRule
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.rules import Rule
from connector.log.transaction.definition import Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.pending import PendingChecksum
from connector.log.transaction.position import Digest, Finished, Open, PositionRecord, SourcePosition

LOG_KEY: Final = b"log"
PARTITIONS_KEY: Final = b"partitions"
EPOCH_KEY: Final = b"epoch:"
OFFLINE_KEY: Final = b"offline"
LOAD_REQUEST_KEY: Final = b"load-request:"
LOAD_KEY: Final = b"load:"
LOAD_IDENTITY: Final = "key"  # of a load, as it is stored
TABLES_KEY: Final = b"tables"
TABLE_KEY: Final = b"table:"
SCHEMA_KEY: Final = b"schema:"
POSITION_KEY: Final = b"position"

FORMAT: Final = 1
"""The newest format of the log and of its list of tables that this version reads."""

ControlRecord = LogRecord | PartitionMap | EpochRecord | OfflineRequest | LoadRequest | TableLoad
Request = OfflineRequest | LoadRequest


@contextmanager
def reading(what: str, **where: Any) -> Iterator[None]:
    """Read a record in the context; any error in it becomes LogDamaged.

    Args:
        what: the record, for the error.
        where: the record's position, or its first bytes, for the error.
    """
    try:
        yield
    except WRONG as error:
        raise LogDamaged(f"{what} cannot be read: {str(error)[:200]}", rule=Rule.UNDECODABLE, **where) from error


def control_message(record: ControlRecord) -> tuple[bytes, bytes]:
    """A control record as a message.

    Returns:
        Key and value.
    """
    match record:
        case LogRecord():
            return LOG_KEY, _json({"log_id": record.log_id, "created": record.created, "format": record.format})
        case PartitionMap():
            rule = {"by": record.rule.by, "patterns": [list(one) for one in record.rule.patterns]}
            map_ = {"generation": record.version, "count": record.count, "rule": rule, "begins": record.begins}
            return PARTITIONS_KEY, _json(map_)
        case EpochRecord():
            return EPOCH_KEY + str(record.epoch).encode(), _json(
                {
                    "epoch": record.epoch,
                    "first_seqno": record.first_seqno,
                    "source_id": record.source_id,
                    "server_uuid": record.server_uuid,
                    "started": record.started,
                    "reason": record.reason,
                    "gtid_set": record.gtid_set,
                    **_forked(record.forked),
                    **({"filters": record.filters} if record.filters is not None else {}),
                    **({"capture": record.capture} if record.capture is not None else {}),
                }
            )
        case OfflineRequest():
            return OFFLINE_KEY, _json({key: getattr(record, name) for name, key in _offline_keys().items()})
        case LoadRequest():
            return LOAD_REQUEST_KEY + _text(list(record.table)), _json(_of_load(record))
        case TableLoad():
            return LOAD_KEY + _text(list(record.table)), _json(_of_load(record))


def request_of(key: bytes, value: bytes | None) -> Request | None:
    """Read a request to the producer; None: the record is none.

    Raises:
        LogDamaged: it cannot be read.
    """
    if key == OFFLINE_KEY:
        return offline_request(value or b"")
    return _read_request(key, value or b"") if key.startswith(LOAD_REQUEST_KEY) else None


def _read_request(key: bytes, value: bytes) -> LoadRequest:
    with reading("a control record", key=key[:80]):
        known = _known(LoadRequest, json.loads(value))
        listed = ("published", "targets", "key_columns")
        known |= {name: tuple(known[name]) for name in listed if known.get(name) is not None}
        known["keys"] = tuple(map(tuple, known.get("keys", ())))
        return checked.record(LoadRequest(table=_table_of(key, LOAD_REQUEST_KEY), **known))


def _read_load(key: bytes, found: Mapping[str, Any]) -> TableLoad:
    known = _known(TableLoad, found) | {"state": LoadState(found["state"])}
    known["load_identity"] = tuple(found[LOAD_IDENTITY])
    known["after"] = None if found["after"] is None else tuple(found["after"])
    known["targets"] = tuple(found.get("targets", ()))
    return checked.record(TableLoad(table=_table_of(key, LOAD_KEY), **known))


def _table_of(key: bytes, prefix: bytes) -> TableName:
    schema, table = json.loads(key.removeprefix(prefix))
    return TableName(schema, table)


def _of_load(record: LoadRequest | TableLoad) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in record.__slots__ if name != "table"}
    if isinstance(record, TableLoad):
        fields[LOAD_IDENTITY] = fields.pop("load_identity")
    return fields


def offline_request(value: bytes) -> OfflineRequest:
    """Read a request to go offline.

    Raises:
        LogDamaged: it is not a request.
    """
    with reading("a control record", key=OFFLINE_KEY):
        found, keys = json.loads(value), _offline_keys()
        fields = {name: found[key] for name, key in keys.items() if key in found}
        return checked.record(OfflineRequest(**fields))


def _offline_keys() -> dict[str, str]:
    """The fields of a request to go offline, and the JSON key of each."""
    return {name: "because" if name == "reason" else name for name in OfflineRequest.__slots__}


def definition_messages(change: Definitions | Redefined) -> Iterator[tuple[bytes, bytes | None]]:
    """The source's tables as messages, one for each table and schema.

    Args:
        change: the changed definitions; or all of them, for the first time.

    Returns:
        Keys and values; None for a dropped table or schema.
    """
    if isinstance(change, Definitions):
        yield TABLES_KEY, _json({"format": FORMAT})
        change = change.everything
    for schema, charset in change.schemas.items():
        yield SCHEMA_KEY + schema.encode(), None if charset is None else _json({"charset": charset})
    for name, table in change.tables.items():
        yield TABLE_KEY + _text(list(name)), None if table is None else _table(table)


def control_state(messages: Iterable[tuple[bytes, bytes | None]]) -> ControlState:
    """The state that a control topic's messages describe.

    Args:
        messages: keys and values, oldest first; a later one replaces an earlier one with its key; None is a tombstone.

    Raises:
        LogDamaged: an unknown or unreadable record.
        Unsupported: a record of a newer format.
    """
    log, partitions, epochs = None, None, dict[int, EpochRecord]()
    has_tables, offline = False, None
    tables = dict[TableName, TableDefinition]()
    schemas = dict[str, str]()
    requests, loads = dict[TableName, LoadRequest](), dict[TableName, TableLoad]()
    for key, value in messages:
        with reading("a control record", key=key[:80]):
            if key.startswith((TABLE_KEY, SCHEMA_KEY)):
                _read_definition(key, value, tables, schemas)
                continue
            if value is None:
                raise LogDamaged("a control record was deleted", key=key[:80])
            found = json.loads(value)
            if key == LOG_KEY:
                log = checked.record(LogRecord(LogId(found["log_id"]), found["created"], found["format"]))
                _check_format(log.format, "the log", key)
            elif key == PARTITIONS_KEY:
                partitions = checked.record(_read_partitions(found))
            elif key.startswith(EPOCH_KEY):
                epoch = EpochRecord(**_known(EpochRecord, found) | {"forked": _read_forked(found.get("forked"))})
                epochs[epoch.epoch] = checked.record(epoch)
            elif key == OFFLINE_KEY:
                offline = offline_request(value)
            elif key.startswith(LOAD_REQUEST_KEY):
                request = _read_request(key, value)
                requests[request.table] = request
            elif key.startswith(LOAD_KEY):
                load = _read_load(key, found)
                loads[load.table] = load
            elif key == TABLES_KEY:
                _check_format(found["format"], "its list of tables", key)
                has_tables = True
            else:
                raise LogDamaged("the control topic holds an unknown record", key=key[:80])
    known = Definitions(tables, schemas) if has_tables else None
    known_epochs = tuple(epochs[number] for number in sorted(epochs))
    return ControlState(log, partitions, known_epochs, known, offline, requests, loads)


def position_message(record: PositionRecord) -> tuple[bytes, bytes]:
    """The producer's position as a message.

    Returns:
        Key and value.
    """
    return POSITION_KEY, _json(
        {
            "finished": _finished(record.finished) if record.finished else None,
            "resume": _position_json(record.resume),
            "gtid_set": record.gtid_set,
            "open": [record.open.seqno, record.open.fragno, record.open.partition] if record.open else None,
            "tails": {str(partition): seqno for partition, seqno in record.tails.items()},
            "last_barrier": record.last_barrier,
            "snapshot": record.snapshot,
            "server_uuid": record.server_uuid,
            "prepared": [record.prepared.count, record.prepared.check],
            "created": record.created,
        }
    )


def position_record(value: bytes) -> PositionRecord:
    """Read a position.

    Raises:
        LogDamaged: it is not a position.
    """
    with reading("the position record", value=value[:200]):
        found = json.loads(value)
        last = found["finished"]
        record = PositionRecord(
            finished=_read_finished(last) if last else None,
            resume=SourcePosition(*found["resume"]),
            gtid_set=found["gtid_set"],
            open=Open(Seqno(found["open"][0]), found["open"][1], found["open"][2]) if found["open"] else None,
            tails={int(partition): Seqno(seqno) for partition, seqno in found["tails"].items()},
            last_barrier=Seqno(found["last_barrier"]),
            snapshot=found["snapshot"],
            server_uuid=found["server_uuid"],
            prepared=PendingChecksum(*found["prepared"]),
            created=found.get("created", 0),
        )
        return checked.record(record)


def _known(kind: type[EpochRecord | LoadRequest | TableLoad], found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that this version knows."""
    return {name: value for name, value in found.items() if name in kind.__slots__}


def _check_format(found: int, what: str, key: bytes) -> None:
    if found > FORMAT:
        raise Unsupported(
            f"{what} was written by a newer version, in format {found}; this version reads up to {FORMAT}",
            hint="upgrade this program",
            key=key,
        )


def _table(table: TableDefinition) -> bytes:
    layout = table.layout
    columns = [
        [column.name, column.type, column.unsigned, column.charset, column.labels, column.nullable]
        for column in layout.columns
    ]
    return _json({"columns": columns, "key": layout.key, "charset": table.charset, "unknown": table.unknown})


def _read_definition(
    key: bytes, value: bytes | None, tables: dict[TableName, TableDefinition], schemas: dict[str, str]
) -> None:
    if key.startswith(SCHEMA_KEY):
        schema = key.removeprefix(SCHEMA_KEY).decode()
        schemas.pop(schema, None)
        if value is not None:
            charset = json.loads(value)["charset"]
            if not isinstance(charset, str):
                raise TypeError(f"a schema's character set is {charset!r}")
            schemas[schema] = charset
        return
    name = TableName(*json.loads(key.removeprefix(TABLE_KEY)))
    tables.pop(name, None)
    if value is not None:
        found = json.loads(value)
        columns = tuple(
            Column(column, type_, unsigned, charset, tuple(labels), nullable)
            for column, type_, unsigned, charset, labels, nullable in found["columns"]
        )
        layout = TableLayout(name, columns, tuple(found["key"]))
        tables[name] = checked.record(TableDefinition(layout, found["charset"], found["unknown"]))


def _read_partitions(found: Mapping[str, Any]) -> PartitionMap:
    if "rule" not in found:  # of an older producer
        return PartitionMap(found["generation"], found["count"])
    rule = ShardRule(found["rule"]["by"], tuple((name, pattern) for name, pattern in found["rule"]["patterns"]))
    return PartitionMap(found["generation"], found["count"], rule, tuple(map(Seqno, found["begins"])))


def _forked(forked: Forked | None) -> dict[str, Any]:
    if forked is None:
        return {}
    return {"forked": {"trapped": forked.trapped, "events": [list(one) for one in forked.events]}}


def _read_forked(found: Mapping[str, Any] | None) -> Forked | None:
    if found is None:
        return None
    return Forked(found["trapped"], tuple(Range(Seqno(first), Seqno(last)) for first, last in found["events"]))


def _finished(finished: Finished) -> dict[str, Any]:
    digest = finished.digest
    return {
        "seqno": finished.seqno,
        "epoch": finished.epoch,
        "event_id": finished.event_id,
        "gtid": finished.gtid,
        "digest": [digest.rows, digest.size, digest.crc32],
        "start": _position_json(finished.start),
    }


def _read_finished(found: Mapping[str, Any]) -> Finished:
    return Finished(
        seqno=Seqno(found["seqno"]),
        epoch=Epoch(found["epoch"]),
        event_id=found["event_id"],
        gtid=found["gtid"],
        digest=Digest(*found["digest"]),
        start=SourcePosition(*found["start"]),
    )


def _position_json(position: SourcePosition) -> list[str | int]:
    return [position.file, position.offset]


def _json(value: Mapping[str, Any]) -> bytes:
    return _text(value)


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
