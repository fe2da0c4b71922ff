"""Where a consumer begins, found and proved before it reads anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from connector.config.model import Config
from connector.consume.decoding import Decoder
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import BrokerUnavailable, ConfigError, LogDamaged
from connector.kafka.handshake import handshake
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.format.first_fields import first_fields
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import NO_EPOCH, NO_SEQNO, Kind, LogId, Seqno, ShardId
from connector.log.reading.search import Probe, before_time
from connector.log.transaction.position import PositionRecord, TargetPosition
from connector.log.writing.control import PartitionMap
from connector.log.writing.history import History


@dataclass(frozen=True, slots=True)
class Beginning:
    """A place that lies on the log's history, and from which on everything is there.

    Args:
        history: the log's; None: only the markers tell it.
        partitions: how many it has.
        position: the place.
        offsets: of each partition that is read, where to begin.
    """

    history: History | None
    partitions: int
    position: ConsumerPosition
    offsets: Mapping[int, int]


def begin(
    config: Config,
    start: Start | ConsumerPosition,
    shards: tuple[ShardId, ...] | None,
    decoder: Decoder,
    committed: Callable[[int], ConsumerPosition | None],
) -> Beginning:
    """Look for the place, and prove it as an applier proves its target's.

    Args:
        config: the service and its brokers.
        start: where.
        shards: which alone are read; None: all.
        decoder: of the log's messages.
        committed: what the group has committed, of a topic with so many partitions.

    Raises:
        HistoriesDiffer: the position is of another log, or of another history of it.
        LogDamaged: what would be read first is deleted, or the log's topics contradict each other.
        ConfigError: there is no such event; or the position is of another service or of other shards.
        BrokerUnavailable: the brokers do not answer, or the log does not exist yet.
        PreflightError: the brokers refuse us.
    """
    with LogReader(config, point_lookup=True) as log:
        look = _Look.of(config, log, shards, decoder)
        position = look.place(start, committed)
    if position.service != config.service or position.shards != shards:
        raise ConfigError(
            "the position is of another service, or of other shards",
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
    agreed = handshake(config, of_target, look.chosen)
    offsets = {p: agreed.offsets.get(p, look.bounds[p][0]) for p in look.chosen}
    return Beginning(agreed.history, agreed.partitions, replace(position, log_id=agreed.history.log_id), offsets)


@dataclass(frozen=True, slots=True)
class _Look:
    """The log as it is found."""

    config: Config
    log: LogReader
    decoder: Decoder
    shards: tuple[ShardId, ...] | None
    history: History
    record: PositionRecord
    partitions: int
    chosen: Collection[int]
    bounds: Mapping[int, tuple[int, int]]
    map: PartitionMap | None

    @classmethod
    def of(cls, config: Config, log: LogReader, shards: tuple[ShardId, ...] | None, decoder: Decoder) -> _Look:
        control = log.control() if log.partitions(config.control_topic) else None
        record = log.position() if control is not None and control.log is not None else None
        if control is None or record is None:
            raise BrokerUnavailable(
                "the log does not exist yet",
                hint=f"thl produce begins it (service {config.service})",
                topic=config.topic,
            )
        history = History.of(control, record.last_finished)
        count = log.partitions(config.topic)
        chosen = range(count) if shards is None else sorted({0, *(partition_of(shard, count) for shard in shards)})
        bounds = {partition: log.bounds(partition) for partition in chosen}
        return cls(config, log, decoder, shards, history, record, count, chosen, bounds, control.partitions)

    def place(
        self, start: Start | ConsumerPosition, committed: Callable[[int], ConsumerPosition | None]
    ) -> ConsumerPosition:
        if isinstance(start, ConsumerPosition):
            return start
        match start.at:
            case "committed":
                return committed(self.partitions) or self.place(start.otherwise or Start.beginning(), committed)
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
        """The place right before an event."""
        last = self.history.last_finished
        if not 0 <= seqno <= last + 1:
            raise ConfigError("the log has no such event", service=self.config.service, seqno=seqno, last=last)
        if seqno and seqno < (kept := self._kept()):
            raise LogDamaged(
                "What is to be read first was deleted by the topic's retention",
                hint="begin with the oldest that is kept, and keep the log for longer",
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
        """The first event from which on all that was written to the partitions is there."""
        oldest = Seqno(0)
        for partition in self.chosen:
            start, end = self.bounds[partition]
            if start == 0:
                continue
            found = self.log.first(partition, start, end)
            if found is None:
                deleted = self.record.tails.get(partition, NO_SEQNO)
            else:
                place = first_fields(found[1], f"{self.config.topic}-{partition}@{found[0]}")
                deleted = place.seqno if place.fragno else place.prev_seqno
            oldest = max(oldest, Seqno(deleted + 1))
        return oldest

    def _of_time(self, time: int, slack: int) -> Seqno:
        """The first event that was committed then or later; the next one when all are earlier."""
        found = [Seqno(self.history.last_finished + 1)]
        for partition in self.chosen:
            start, end = self.bounds[partition]

            def read(offset: int, partition: int = partition, end: int = end) -> Probe[FragmentHeader] | None:
                return next(self._headers(partition, offset, end), None)

            for met in self._headers(partition, before_time(read, start, end, time, slack), end):
                committed = met.header.commit_time
                if committed is not None and committed >= time and met.header.seqno < found[0]:
                    found.append(met.header.seqno)
                if committed is not None and committed >= time:
                    break
        return min(found)

    def _of_gtid(self, gtid: str) -> Seqno:
        """The event of a GTID, looked for among those of its epoch: each epoch's record tells what was there before."""
        gtid = gtid.lower()  # as the log writes them
        low, high = Seqno(0), Seqno(self.history.last_finished + 1)
        for record in self.history.epochs:
            if record.gtid_set is None or gtid not in parse_gtids(record.gtid_set):
                low = record.first_seqno
            else:
                high = record.first_seqno
                break
        for partition in self.chosen if low < high else ():
            start, end = (self.log.offset_of(partition, seqno, self.bounds[partition]) for seqno in (low, high))
            for met in self._headers(partition, start, end):
                if met.header.gtid == gtid:
                    return met.header.seqno
        check_tails(self.config, self.chosen)  # or it may be what a partition lost
        raise ConfigError(
            "no event that Kafka holds has the GTID", service=self.config.service, gtid=gtid, first=low, last=high - 1
        )

    def _headers(self, partition: int, start: int, end: int) -> Iterator[Probe[FragmentHeader]]:
        for offset, value in self.log.fragments(partition, start, end):
            header = self.decoder.header(value, f"{self.config.topic}-{partition}@{offset}")
            if header.kind is Kind.EPOCH:
                header = replace(header, commit_time=None, gtid=None)
            yield Probe(offset, header)
