"""Finds the log's trapped events: those that its source lacks, read from the last epoch that began before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from connector.config.model import Config
from connector.errors import HistoriesDiffer
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import SOURCE_OR_NEW_LOG, LoggedEvent, overlaps
from connector.log.epochs.history import History
from connector.log.format.decoded_parts import DecodedParts
from connector.log.format.first_fields import first_fields
from connector.log.format.fragment_reader import header_of
from connector.log.gtid.source_gtids import lacking, parse_gtids
from connector.log.ids import Kind, Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.xa import PREPARED
from connector.schema import read_change, read_fragment


def trapped_events(config: Config, control: ControlState, position: PositionRecord, executed: str) -> list[LoggedEvent]:
    """The finished events whose GTIDs the source lacks, without those that an earlier epoch left out.

    Events of loads after the first of them belong to them: the rows that a load read may show what they did.

    Args:
        config: the service and its brokers.
        control: the log's control records.
        position: the log's, read before the source's GTIDs: later events are not checked.
        executed: the source's executed GTID set.

    Raises:
        HistoriesDiffer: retention may have deleted trapped events.
        BrokerUnavailable, LogDamaged: see `LogReader`.
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
        return gtid is not None and gtid not in there and not overlaps(history.trapped, seqno, seqno)

    check_tails(config)  # events that a partition lost may be trapped, too
    found: list[LoggedEvent] = []
    loads: list[LoggedEvent] = []
    oldest: LoggedEvent | None = None
    with LogReader(config) as reader:
        for partition in position.tails:
            for event in logged_events(f"{config.topic}-{partition}", reader.since(partition, bound), is_trapped):
                if not bound <= event.seqno <= position.last_finished:
                    continue
                if oldest is None or event.seqno < oldest.seqno:
                    oldest = event
                if is_trapped(event.seqno, event.gtid):
                    found.append(event)
                elif event.kind is Kind.LOAD and not overlaps(history.trapped, event.seqno, event.seqno):
                    loads.append(event)
    if oldest is not None and oldest.seqno > bound and is_trapped(oldest.seqno, oldest.gtid):
        raise HistoriesDiffer(
            "the source lacks the oldest event that the log still holds, and earlier ones cannot be checked",
            hint=SOURCE_OR_NEW_LOG,
            seqno=oldest.seqno,
            gtid=oldest.gtid,
        )
    first = min((event.seqno for event in found), default=position.last_finished)
    return sorted([*found, *(load for load in loads if load.seqno > first)], key=lambda event: event.seqno)


def logged_events(
    at: str, values: Iterator[bytes], selected: Callable[[Seqno, str | None], bool]
) -> Iterator[LoggedEvent]:
    """Read the finished events of a partition; the selected ones with their numbers of rows and statements."""
    chunks = DecodedParts(partial(read_change, at=at), at)
    rows: Counter[str] = Counter()
    statements, next_fragno = 0, 0
    for value in values:
        fields = first_fields(value, at)
        if fields.kind is Kind.EPOCH or fields.fragno == 0:
            rows, statements, next_fragno = Counter(), 0, 0
        if fields.kind is Kind.EPOCH or fields.fragno != next_fragno:
            continue
        next_fragno += 1
        header = header_of(value, at)
        if selected(fields.seqno, header.gtid):
            for change in chunks.whole(fields.fragno, read_fragment(value, at)["changes"]):
                if "rows" in change:
                    rows[f"{change['schema']}.{change['table']}"] += len(change["rows"])
                else:
                    statements += 1
        if fields.last_frag:
            yield LoggedEvent(
                seqno=fields.seqno,
                epoch=fields.epoch,
                gtid=header.gtid,
                kind=fields.kind,
                xa_prepared=header.metadata.get(PREPARED),
                event_id=header.event_id or "",
                commit_time=header.commit_time or 0,
                rows=dict(rows),
                statements=statements,
            )
