"""Finds the position that a consumer begins with, and proves that the log has everything from there on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from connector.config.model import Config
from connector.consume.decoding import MessageDecoder
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import ConfigError, LogDamaged
from connector.kafka.handshake import handshake, log_missing
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.epochs.control import PartitionMap
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import NO_EPOCH, NO_SEQNO, Kind, LogId, Seqno, ShardId
from connector.log.reading.search import Probe, before_time
from connector.log.transaction.position import PositionRecord, TargetPosition


@dataclass(frozen=True, slots=True)
class Beginning:
    """A position on the log's history from which nothing is missing.

    Args:
        history: the log's; None: it is learnt from the epochs' markers.
        partitions: number of partitions of the event topic.
        position: the position.
        offsets: partition to read → first offset.
    """

    history: History | None
    partitions: int
    position: ConsumerPosition
    offsets: Mapping[int, int]


def begin(
    config: Config,
    start: Start | ConsumerPosition,
    shards: tuple[ShardId, ...] | None,
    decoder: MessageDecoder,
    committed: Callable[[int], ConsumerPosition | None],
) -> Beginning:
    """Find the position, and prove it as an applier proves its target's.

    Args:
        config: the service and its brokers.
        start: the first event, or a position.
        shards: the shards to read; None: all.
        decoder: decodes the log's messages.
        committed: returns the group's committed position, given the number of partitions.

    Raises:
        HistoriesDiffer: the position belongs to another log, or to another history of it.
        LogDamaged: the first events to read are deleted, or the log's topics contradict each other.
        ConfigError: there is no such event; or the position belongs to another service or other shards.
        BrokerUnavailable: the brokers do not answer, or the log does not exist yet.
        PreflightError: the brokers refuse access.
    """
    with LogReader(config, point_lookup=True) as log:
        view = _LogView.of(config, log, shards, decoder)
        position = view.resolve(start, committed)
    if position.service != config.service or position.shards != shards:
        raise ConfigError(
            "the position belongs to another service, or to other shards",
            service=position.service,
            shards=position.shards,
            expected=f"{config.service} {shards}",
        )
    of_target = TargetPosition(
        service=config.service,
        log_id=position.log_id,
        seqno=position.seqno,
        epoch=position.epoch,
        source_id=f"a consumer of {config.service}",
        offsets=position.offsets,
    )
    had = {p: max(position.tails.get(p, NO_SEQNO), position.floor) for p in view.chosen}
    agreed = handshake(config, of_target, view.chosen, None if shards is None else had)
    offsets = {p: agreed.offsets.get(p, view.bounds[p][0]) for p in view.chosen}
    return Beginning(agreed.history, agreed.partitions, replace(position, log_id=agreed.history.log_id), offsets)


@dataclass(frozen=True, slots=True)
class _LogView:
    """The log at the time of opening."""

    config: Config
    log: LogReader
    decoder: MessageDecoder
    shards: tuple[ShardId, ...] | None
    history: History
    record: PositionRecord
    partitions: int
    chosen: Collection[int]
    bounds: Mapping[int, tuple[int, int]]
    map: PartitionMap | None

    @classmethod
    def of(
        cls, config: Config, log: LogReader, shards: tuple[ShardId, ...] | None, decoder: MessageDecoder
    ) -> _LogView:
        control = log.control() if log.partitions(config.control_topic) else None
        record = log.position() if control is not None and control.log is not None else None
        if control is None or record is None:
            raise log_missing(config)
        history = History.of(control, record.last_finished)
        count = log.partitions(config.topic)
        chosen = range(count) if shards is None else sorted({0, *(partition_of(shard, count) for shard in shards)})
        bounds = {partition: log.bounds(partition) for partition in chosen}
        return cls(config, log, decoder, shards, history, record, count, chosen, bounds, control.partitions)

    def resolve(
        self, start: Start | ConsumerPosition, committed: Callable[[int], ConsumerPosition | None]
    ) -> ConsumerPosition:
        if isinstance(start, ConsumerPosition):
            return start
        match start.at:
            case "committed":
                return committed(self.partitions) or self.resolve(start.otherwise or Start.beginning(), committed)
            case "beginning":
                return self._before(Seqno(0))
            case "oldest":
                return self._before(self._kept())
            case "end":
                return self._before(Seqno(self.history.last_finished + 1))
            case "seqno":
                return self._before(Seqno(start.number))
            case "time":
                return self._before(max(self._of_time(start.number, start.slack), self._kept()))
            case "gtid":
                return self._before(self._of_gtid(start.gtid_text))

    def _before(self, seqno: Seqno) -> ConsumerPosition:
        """The position before an event."""
        last = self.history.last_finished
        if not 0 <= seqno <= last + 1:
            raise ConfigError("the log has no such event", service=self.config.service, seqno=seqno, last=last)
        if seqno and seqno < (kept := self._kept()):
            raise LogDamaged(
                "the topic's retention deleted the first events to read",
                hint="begin with Start.oldest(), and raise the topic's retention (kafka.retention_hours)",
                seqno=seqno,
                oldest=kept,
            )
        before = Seqno(seqno - 1)
        return ConsumerPosition(
            service=self.config.service,
            log_id=self.history.log_id if seqno else LogId(""),
            seqno=before,
            epoch=self.history.covering(before).epoch if seqno else NO_EPOCH,
            offsets={
                p: self.log.offset_of(p, seqno, self.bounds[p]) if seqno else self.bounds[p][0] for p in self.chosen
            },
            shards=self.shards,
            floor=NO_SEQNO if self.shards is None else before,
            generation=1 if self.shards is None or self.map is None else self.map.at(seqno),
        )

    def _kept(self) -> Seqno:
        """The first event from which the chosen partitions hold all that was written to them."""
        return Seqno(self.log.incomplete_upto(self.bounds, self.history, self.record) + 1)

    def _of_time(self, time: int, slack: int) -> Seqno:
        """The first event committed at a time or later; the next event of the log when all are earlier."""
        found = [Seqno(self.history.last_finished + 1)]
        for partition in self.chosen:
            start, end = self.bounds[partition]

            def read(offset: int, partition: int = partition, end: int = end) -> Probe[FragmentHeader] | None:
                return next(self._headers(partition, offset, end), None)

            for probe in self._headers(partition, before_time(read, start, end, time, slack), end):
                committed = probe.header.commit_time
                if committed is not None and committed >= time and probe.header.seqno < found[0]:
                    found.append(probe.header.seqno)
                if committed is not None and committed >= time:
                    break
        return min(found)

    def _of_gtid(self, gtid: str) -> Seqno:
        """The event with a GTID. Each epoch's record has the GTIDs before it, so one epoch is searched."""
        gtid = gtid.lower()  # the log has lower case
        low, high = Seqno(0), Seqno(self.history.last_finished + 1)
        for record in self.history.epochs:
            if record.gtid_set is None or gtid not in parse_gtids(record.gtid_set):
                low = record.first_seqno
            else:
                high = record.first_seqno
                break
        for partition in self.chosen if low < high else ():
            start, end = (self.log.offset_of(partition, seqno, self.bounds[partition]) for seqno in (low, high))
            for probe in self._headers(partition, start, end):
                if probe.header.gtid == gtid:
                    return probe.header.seqno
        check_tails(self.config, self.chosen)  # a partition may have lost the event
        raise ConfigError(
            "no event in Kafka has the GTID", service=self.config.service, gtid=gtid, first=low, last=high - 1
        )

    def _headers(self, partition: int, start: int, end: int) -> Iterator[Probe[FragmentHeader]]:
        for offset, value in self.log.fragments(partition, start, end):
            header = self.decoder.header(value, f"{self.config.topic}-{partition}@{offset}")
            if header.kind is Kind.EPOCH:
                header = replace(header, commit_time=None, gtid=None)
            yield Probe(offset, header)
