"""Reads events of the log into the record store: those that it lacks, or all that the log still has.

What the log has of a row is whole, where it was published with the store; a partial image is completed if the row is
known, and else the row stays unknown.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any, Final

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.arrow_reader import read_in_order
from connector.kafka.log_reader import LogReader
from connector.log.compact.scan import Messages
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.format import avro
from connector.log.format.decoded_parts import Change, DecodedParts
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, Action, Epoch, LogId, Outcome, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.producer.records.completion import EventCompleter
from connector.retrying import Stopped
from connector.schema import read_change, read_fragment

LOG: Final = logging.getLogger(__name__)
NOWHERE: Final = SourcePosition("", 0)
LOG_EVERY_EVENTS: Final = 100_000  # between two lines of the log


def first_event(config: Config, history: History) -> Seqno:
    """The first event from which the log has every event; one after the last, if it has none."""
    with LogReader(config, role="producer") as log:
        record = log.position()
        spans = {number: log.bounds(number) for number in range(config.kafka.partitions)}
        return Seqno(log.incomplete_upto(spans, history, record) + 1)


def read_events(config: Config, control: ControlState, completion: EventCompleter, last: Seqno, stop: Event) -> int:
    """Read the events after the store's last one, but for the trapped ones.

    From the first trapped event on, the store has the epoch of the fork: if that epoch is never written, the store goes
    back to before it.

    Args:
        config: the service and its brokers.
        control: the log's control records.
        completion: the store.
        last: the last finished event of the log.
        stop: set to end the reading, which is continued when the store is opened again.

    Returns:
        The number of events.

    Raises:
        LogDamaged: the log has not all of them.
        BrokerUnavailable: the brokers do not answer.
        Stopped: `stop` was set.
    """
    history = History.of(control, last)
    versions = completion.versions
    count, follower = 0, _Follower(completion, config.topic)
    for release in _releases(config, history, Seqno(versions.state.seqno + 1), last):
        if stop.is_set():
            raise Stopped
        if release.first:
            _pass_trapped(completion, history, Seqno(release.seqno - 1))
        follower.follow(release, history.epoch_without_trapped(release.seqno))
        if release.complete:
            count += 1
            if count % LOG_EVERY_EVENTS == 0:
                LOG.info(
                    "the record store reads the log",
                    extra={"service": config.service, "seqno": release.seqno, "last": last},
                )
    _pass_trapped(completion, history, last)
    versions.flush()
    return count


def _pass_trapped(completion: EventCompleter, history: History, upto: Seqno) -> None:
    """Pass over the events that are not released before the next one, or the log's end: trapped ones."""
    for seqno in range(completion.versions.state.seqno + 1, upto + 1):
        completion.pass_over(Seqno(seqno), history.epoch_without_trapped(Seqno(seqno)))


def _releases(config: Config, history: History, first: Seqno, last: Seqno) -> Iterator[Release[bytes]]:
    partitions = config.kafka.partitions
    with LogReader(config, role="producer", point_lookup=True) as log:
        record = log.position()
        spans = {number: log.bounds(number) for number in range(partitions)}
        offsets = {number: log.offset_of(number, first, span) for number, span in spans.items()}
        for number, span in spans.items():
            if offsets[number] <= span[0]:  # the partition may begin within an event that was given up
                offsets[number] = log.retained(number, span, history, record).offset
    epoch = history.covering(Seqno(first - 1)).epoch if first else NO_EPOCH
    start = TargetPosition(
        service=config.service,
        log_id=history.log_id if first else LogId(""),
        seqno=Seqno(first - 1),
        epoch=epoch,
        offsets=offsets,
    )
    sequencer = EventSequencer[bytes, Messages](
        topic=config.topic, partitions=partitions, position=start, history=history
    )
    with closing(read_in_order(config.kafka, config.topic, offsets, sequencer)) as releases:
        for release in releases:
            if isinstance(release, Voided):
                raise LogDamaged("an event that is finished was given up", seqno=release.seqno)
            if release.seqno <= last:
                yield release
            if release.complete and release.seqno >= last:
                return
    if sequencer.released >= last:  # the last events are trapped
        return
    raise LogDamaged("the log ends before its last event", seqno=last)


class _Follower:
    """Gives events of the log to a store, part by part.

    Args:
        completion: the store.
        at: the topic, for errors.
    """

    def __init__(self, completion: EventCompleter, at: str) -> None:
        self._completion = completion
        self._at = at
        self._parts = DecodedParts(partial(read_change, at=at), at)
        self._layouts: dict[TableName, TableLayout] = {}

    def follow(self, release: Release[bytes], epoch: Epoch) -> None:
        """Give it the next part of an event, as one of an epoch."""
        header = release.header
        changes: list[Rows | Statement] = []
        for number, body in enumerate(release.bodies, header.fragno - len(release.bodies) + 1):
            for change in self._parts.whole(number, read_fragment(body, self._at)["changes"]):
                changes.append(_rows(change, self._layout(change)) if "rows" in change else _statement(change))
        begin = _start(header) if release.first else None
        ending = None
        if release.complete:
            event = EventId.parse(header.event_id or "")
            end = SourcePosition(event.file, event.end)
            ending = TransactionEnd(end, header.commit_time or 0, header.outcome or Outcome.COMMIT)
        self._completion.follow(TransactionBatch(begin, changes, ending), release.seqno, epoch)

    def _layout(self, change: Change) -> TableLayout:
        """The layout of a row change; equal ones are the same object."""
        columns = tuple(
            Column(one["name"], one["type"], one["unsigned"], one["charset"], tuple(one["labels"]), one["nullable"])
            for one in change["columns"]
        )
        layout = TableLayout(TableName(change["schema"], change["table"]), columns, tuple(change["key_columns"]))
        known = self._layouts.get(layout.name)
        if known != layout:
            known = self._layouts[layout.name] = layout
        return known


def _start(header: FragmentHeader) -> TransactionStart:
    return TransactionStart(
        server_id=header.server_id,
        thread_id=header.thread_id,
        gtid=header.gtid,
        last_committed=0,
        sequence_number=0,
        start=NOWHERE,
        kind=header.kind,
        metadata=header.metadata,
    )


def _statement(change: Mapping[str, Any]) -> Statement:
    return Statement(change["schema"], change["sql"], change["options"])


def _rows(change: Change, layout: TableLayout) -> Rows:
    data, ends = bytearray(), array("Q")
    for row in change["rows"]:
        data += _image(row["before"]) + _image(row["after"])
        ends.append(len(data))
    action = next(one for one in Action if one.name.lower() == change["action"])
    return Rows(layout, action, bytes(data), ends, _bits(change, "before_present"), _bits(change, "after_present"))


def _image(values: Sequence[Any] | None) -> bytes:
    return b"\x00" if values is None else b"\x02" + avro.array(map(avro.union, values))


def _bits(change: Change, name: str) -> bytes:
    """The bitmap of an image's columns, empty where it has all."""
    bits: bytes = change[name]
    width = len(change["columns"])
    every = (1 << width) - 1
    return b"" if int.from_bytes(bits, "little") & every == every else bits
