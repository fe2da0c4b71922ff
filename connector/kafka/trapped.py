"""The events of the log that its source lacks, read from Kafka from the last epoch on that began before all of them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import fastavro

from connector.config.model import Config
from connector.errors import HistoriesDiffer, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.format.decoded_parts import DecodedParts
from connector.log.format.first_fields import SHOWN, body_of, first_fields
from connector.log.gtid.source_gtids import lacking, parse_gtids
from connector.log.ids import Kind, Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.xa import PREPARED
from connector.log.writing.control import ControlState
from connector.log.writing.fork import NEW_LOG, LoggedEvent, meets
from connector.log.writing.history import History

BODY: Final = "changes"
"""The first field behind a fragment's header."""

Schemas = tuple[Any, Any, Any]
"""Of a whole fragment, of its header, and of one change."""


def trapped_events(
    config: Config, control: ControlState, position: PositionRecord, executed: str, schema: dict[str, Any]
) -> list[LoggedEvent]:
    """The finished events whose GTIDs the source lacks, but for those that an earlier epoch went on without.

    Args:
        config: the service and its brokers.
        control: the log's.
        position: the log's, read before the source was asked: what comes behind it is not looked at.
        executed: what the source has.
        schema: of fragments.

    Raises:
        HistoriesDiffer: retention may have deleted some.
        BrokerUnavailable, LogDamaged: as `LogReader`.
    """
    history = History.of(control, position.last_finished)
    there = parse_gtids(executed)
    bound = next(
        (
            record.first_seqno
            for record in reversed(control.epochs)
            if record.gtid_set is not None and not lacking(record.gtid_set, executed)
        ),
        Seqno(0),
    )

    def is_trapped(seqno: Seqno, gtid: str | None) -> bool:
        return gtid is not None and gtid not in there and not meets(history.trapped, seqno, seqno)

    check_tails(config)  # what a partition lost may be trapped, too
    parsed = _schemas(schema)
    found: list[LoggedEvent] = []
    oldest: LoggedEvent | None = None
    with LogReader(config) as reader:
        for partition in position.tails:
            for event in _events(f"{config.topic}-{partition}", reader.since(partition, bound), is_trapped, parsed):
                if not bound <= event.seqno <= position.last_finished:
                    continue
                if oldest is None or event.seqno < oldest.seqno:
                    oldest = event
                if is_trapped(event.seqno, event.gtid):
                    found.append(event)
    if oldest is not None and oldest.seqno > bound and is_trapped(oldest.seqno, oldest.gtid):
        raise HistoriesDiffer(
            "The source lacks the oldest event that the log still holds: what it lacks before nobody can tell",
            hint=NEW_LOG,
            seqno=oldest.seqno,
            gtid=oldest.gtid,
        )
    return sorted(found, key=lambda event: event.seqno)


def _events(
    at: str, values: Iterator[bytes], wanted: Callable[[Seqno, str | None], bool], schemas: Schemas
) -> Iterator[LoggedEvent]:
    """The finished events of a partition; of those that are wanted also what they change."""
    whole, header, one = schemas
    chunks = DecodedParts(lambda data: _read(data, one, at, whole=True), at)
    rows: Counter[str] = Counter()
    statements, next_fragno = 0, 0
    for value in values:
        place = first_fields(value, at)
        if place.kind is Kind.EPOCH or place.fragno == 0:
            rows, statements, next_fragno = Counter(), 0, 0
        if place.kind is Kind.EPOCH or place.fragno != next_fragno:
            continue
        next_fragno += 1
        fragment = _read(value, header, at)
        if wanted(place.seqno, fragment["gtid"]):
            for change in chunks.whole(place.fragno, _read(value, whole, at)[BODY]):
                if "rows" in change:
                    rows[f"{change['schema']}.{change['table']}"] += len(change["rows"])
                else:
                    statements += 1
        if place.last_frag:
            yield LoggedEvent(
                seqno=place.seqno,
                epoch=place.epoch,
                gtid=fragment["gtid"],
                kind=place.kind,
                xa_prepared=fragment["metadata"].get(PREPARED),
                event_id=fragment["event_id"] or "",
                commit_time=fragment["commit_time"] or 0,
                rows=dict(rows),
                statements=statements,
            )


def _schemas(schema: dict[str, Any]) -> Schemas:
    fields = schema["fields"]
    before = next(at for at, field in enumerate(fields) if field["name"] == BODY)
    # A record's fields follow each other: who knows the first ones can read these alone.
    header = {**schema, "fields": fields[:before]}
    return (
        fastavro.parse_schema(schema),
        fastavro.parse_schema(header),
        fastavro.parse_schema(fields[before]["type"]["items"]),
    )


def _read(value: bytes, schema: Any, at: str, *, whole: bool = False) -> dict[str, Any]:
    try:
        body = io.BytesIO(value if whole else value[body_of(value, at) :])
        fragment: Any = fastavro.schemaless_reader(body, schema, None)
    except (EOFError, ValueError, IndexError) as error:
        raise LogDamaged("a message of the event topic is not a fragment", at=at, begins=value[:SHOWN].hex()) from error
    found: dict[str, Any] = fragment
    return found
