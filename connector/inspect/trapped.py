"""Describes trapped events for `thl trapped`: events of the log that its source lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from connector.config.model import Config
from connector.errors import HistoriesDiffer
from connector.kafka.ends import no_log
from connector.kafka.log_reader import LogReader
from connector.kafka.trapped import trapped_events
from connector.log.epochs.fork import LoggedEvent
from connector.log.gtid.source_gtids import lacking
from connector.mysql.server import source_state
from connector.mysql.server.connection import session


@dataclass(frozen=True, slots=True)
class TrappedEvent:
    """A trapped event.

    Args:
        committed: commit time on its source, UTC, ISO 8601.
        rows: `schema.table` → number of rows.
        statements: number of statements.
    """

    seqno: int
    epoch: int
    gtid: str | None
    event_id: str
    committed: str
    kind: str
    rows: Mapping[str, int]
    statements: int


@dataclass(frozen=True, slots=True)
class Trapped:
    """All trapped events of a log.

    Args:
        trapped: GTIDs that the producer has read and the source lacks; "": none.
        count: number of these GTIDs.
        passed: number of GTIDs without an event: filtered, empty, or only prepared.
        events: the events of the others, by seqno.
    """

    trapped: str
    count: int
    passed: int
    events: tuple[TrappedEvent, ...]


def find_trapped(config: Config) -> Trapped:
    """Compare the log with its source. The log is read first; events that a producer adds meanwhile are not checked.

    Raises:
        ConfigError: there is no such log.
        HistoriesDiffer: one of the two has no GTIDs, or retention may have deleted trapped events.
        BrokerUnavailable, SourceUnavailable: Kafka or the source does not answer.
    """
    with LogReader(config, high_watermark=True) as reader:
        exists = reader.partitions(config.control_topic)
        position = reader.position() if exists else None
        control = reader.control() if exists else None
    if position is None or control is None:
        raise no_log(config)
    with session(config.source) as connection:
        executed = source_state.gtid_begun(connection)
    if position.gtid_set is None or executed is None:
        raise HistoriesDiffer("trapped events cannot be found without GTIDs", log=position.gtid_set, source=executed)
    missing = lacking(position.gtid_set, executed)
    if not missing:
        return Trapped("", 0, 0, ())
    events = trapped_events(config, control, position, executed)
    return Trapped(
        str(missing), missing.count(), max(0, missing.count() - len(events)), tuple(map(_trapped_event, events))
    )


def _trapped_event(event: LoggedEvent) -> TrappedEvent:
    return TrappedEvent(
        seqno=event.seqno,
        epoch=event.epoch,
        gtid=event.gtid,
        event_id=event.event_id,
        committed=datetime.fromtimestamp(event.commit_time / 1e6, UTC).isoformat(timespec="microseconds"),
        kind=event.kind.name.lower(),
        rows=event.rows,
        statements=event.statements,
    )
