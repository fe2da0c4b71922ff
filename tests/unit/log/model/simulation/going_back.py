"""A target's position is taken back, to apply again what is there (`--from-seqno`), or with its data (`thl undo`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connector.errors import LogDamaged
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading import search
from connector.log.reading.event_sequencer import EventSequencer, Release
from connector.log.transaction.position import TargetPosition
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka, Partition
from tests.unit.log.model.simulation.target import Target


class GoingBack:
    """What an applier does to go back on a log.

    Args:
        kafka: has the log.
        history: of the log.
        target: as it is.
        token: of the applier.
    """

    keeps_the_head = True  # of what is taken back, until it is there again
    takes_its_offsets_back = True
    takes_its_epoch_back = True

    def __init__(self, kafka: Kafka, history: History, target: Target, token: int) -> None:
        self._kafka, self._history, self._target, self._token = kafka, history, target, token

    def rewind(self, at: TargetPosition, first: Seqno) -> TargetPosition:
        """Take the position back, once it is shown that everything up to the head is there to be applied again."""
        first = self._history.beginning(first)
        if not first:  # event 0 has no event before it, whose epoch could be read
            return at
        before = Seqno(first - 1)
        rewound = replace(
            at,
            seqno=before,
            epoch=self._history.covering(before).epoch if self.takes_its_epoch_back else at.epoch,
            event_id="",
            offsets=self._offsets_of(first) if self.takes_its_offsets_back else at.offsets,
            consistent=False,
            rewound_from=max(at.rewound_from, at.seqno) if self.keeps_the_head else NO_SEQNO,
        )
        self._check_again(rewound)
        self._target.commit(self._token, [], rewound)
        return rewound

    def undo(self, at: TargetPosition, to: Seqno) -> TargetPosition:
        """Take data and position back, if nothing stands against it."""
        out = {seqno for seqno in self._target.lacks if seqno > to}
        if to >= at.seqno or not at.consistent or at.rewound_from != NO_SEQNO or out:
            return at
        first = Seqno(to + 1)
        if self._history.beginning(first) != first:
            return at
        epoch, offsets = self._history.covering(to).epoch, self._offsets_of(first)
        undone = replace(at, seqno=to, epoch=epoch, event_id="", offsets=offsets)
        self._target.take_back(self._token, undone)
        return undone

    def _offsets_of(self, first: Seqno) -> dict[int, int]:
        found: dict[int, search.Probe[FragmentHeader] | None] = {}
        topic = [self._kafka.settled(EVENTS, partition.number) for partition in self._kafka.topics[EVENTS]]
        for partition in topic:

            def read(offset: int, partition: Partition = partition) -> search.Probe[FragmentHeader] | None:
                return next((search.Probe(entry.offset, entry.value[0]) for entry in partition.read(offset, 1)), None)

            found[partition.number] = search.first_of(read, partition.start, partition.end, first)
        if first not in [met.header.seqno for met in found.values() if met]:
            raise LogDamaged("the log has no such event any more", seqno=first)
        ends = {partition.number: partition.end for partition in topic}
        return {number: met.offset if met else ends[number] for number, met in found.items()}

    def _check_again(self, position: TargetPosition) -> None:
        """Read what is to be applied again.

        Raises:
            LogDamaged: the log does not have all of it.
        """
        topic = self._kafka.topics[EVENTS]
        ledger: EventSequencer[Any, Any] = EventSequencer(
            topic="thl.shop", partitions=len(topic), position=position, history=self._history
        )
        done = position.seqno
        for partition in topic:
            for offset, (header, piece) in self._kafka.fetch(
                EVENTS, partition.number, position.offsets.get(partition.number, 0), partition.end
            ):
                ledger.accept(header, partition.number, offset, piece)
        for item in ledger.release():
            if isinstance(item, Release) and item.complete:
                done = item.seqno
        if done < position.rewound_from:
            raise LogDamaged("the log ends before what the target has", seqno=position.rewound_from)
