"""What `thl trapped` tells: the log's events that its source lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from connector.config.model import Config
from connector.errors import HistoriesDiffer
from connector.inspect.events.partitions import no_log
from connector.kafka.log_reader import LogReader
from connector.kafka.trapped import trapped_events
from connector.log.gtid.source_gtids import lacking
from connector.log.writing.fork import LoggedEvent
from connector.mysql.server import source_state
from connector.mysql.server.connection import session


@dataclass(frozen=True, slots=True)
class TrappedEvent:
    """One event.

    Args:
        committed: on the source it came from, UTC, ISO 8601.
        rows: how many of each table, `schema.table`.
        statements: how many beside them.
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
    """All of them.

    Args:
        trapped: GTIDs that the log has, or has passed over, and the source lacks; "": none.
        count: how many.
        passed: how many of them are no events: they were filtered, empty, or only prepared.
        events: the others, by seqno.
    """

    trapped: str
    count: int
    passed: int
    events: tuple[TrappedEvent, ...]


def find_trapped(config: Config) -> Trapped:
    """Compare the log with its source. The log is read first: what a producer adds meanwhile is not looked at.

    Raises:
        ConfigError: there is no such log.
        HistoriesDiffer: one of the two has no GTIDs, or retention may have deleted trapped events.
        BrokerUnavailable, SourceUnavailable: Kafka or the source does not answer.
    """
    with LogReader(config, high_watermark=True) as reader:
        there = reader.partitions(config.control_topic)
        position = reader.position() if there else None
        control = reader.control() if there else None
    if position is None or control is None:
        raise no_log(config)
    with session(config.source) as connection:
        executed = source_state.gtid_executed(connection)
    if position.gtid_set is None or executed is None:
        raise HistoriesDiffer(
            "without GTIDs nobody can tell what the source lacks", log=position.gtid_set, source=executed
        )
    missing = lacking(position.gtid_set, executed)
    if not missing:
        return Trapped("", 0, 0, ())
    events = trapped_events(config, control, position, executed)
    return Trapped(str(missing), missing.count(), max(0, missing.count() - len(events)), tuple(map(_told, events)))


def _told(event: LoggedEvent) -> TrappedEvent:
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
