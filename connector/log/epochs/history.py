"""A log's history: which epoch wrote which seqno; and the proof that a target lies on it.

An epoch begins right after the last event that was finished before it, and writes unfinished events of older epochs
again. So event N was written by the *last* epoch whose first seqno is not above N. Only the control topic is needed for
that, which is never trimmed: the event itself may have been deleted long ago.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from connector.errors import BrokerUnavailable, EventsDeleted, HistoriesDiffer, LogDamaged
from connector.log.epochs.control import ControlState, EpochRecord, trapped_of
from connector.log.epochs.fork import Range, overlaps, ranges_text
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.log.rules import NEW_LOG, Rule
from connector.log.transaction.position import TargetPosition

REFUSED: Final = "Client handshake failure: Client response validation failed: "
"""Begins every refusal of the handshake, as in Tungsten, whose users search logs for it."""


@dataclass(frozen=True, slots=True)
class History:
    """The history of a log: its epochs and forks, from its control topic.

    Read it *after* the target was claimed: an older applier may have gone on until then.

    Args:
        log_id: the log's identity.
        epochs: every epoch, ascending.
        last_finished: the last finished event, NO_SEQNO if none.
    """

    log_id: LogId
    epochs: tuple[EpochRecord, ...]
    last_finished: Seqno

    @classmethod
    def of(cls, control: ControlState, last_finished: Seqno) -> History:
        """The history by a control topic.

        Raises:
            LogDamaged: the topic has no log, no epoch, misses one, or has them out of order.
        """
        if control.log is None or not control.epochs:
            raise LogDamaged(
                "The control topic has no log",
                hint="start the producer first; if the log existed, the topic was lost",
            )
        log_id, epochs = control.log.log_id, control.epochs
        if epochs[0].epoch != 1 or epochs[0].first_seqno != 0:
            raise LogDamaged("The control topic misses the log's first epoch", log_id=log_id, first=epochs[0].epoch)
        for before, after in pairwise(epochs):
            if after.epoch != before.epoch + 1:
                raise LogDamaged("The control topic misses an epoch", log_id=log_id, epoch=before.epoch + 1)
            if after.first_seqno < before.first_seqno:
                raise LogDamaged(
                    "An epoch begins before the one before it",
                    log_id=log_id,
                    epoch=after.epoch,
                    first_seqno=after.first_seqno,
                    before=before.first_seqno,
                )
        if epochs[-1].first_seqno > last_finished + 1:
            raise LogDamaged(
                "The newest epoch begins after events that the position does not know: the position topic lost its end",
                log_id=log_id,
                epoch=epochs[-1].epoch,
                first_seqno=epochs[-1].first_seqno,
                last_finished=last_finished,
            )
        return cls(log_id, epochs, last_finished)

    def covering(self, seqno: Seqno) -> EpochRecord:
        """The epoch that wrote the finished event `seqno`.

        Raises:
            HistoriesDiffer: the log has not finished such an event.
        """
        if not 0 <= seqno <= self.last_finished:
            raise HistoriesDiffer(
                "The log has no such event", log_id=self.log_id, seqno=seqno, last_finished=self.last_finished
            )
        return self.epochs[bisect_right(self.epochs, seqno, key=lambda record: record.first_seqno) - 1]

    def epoch_without_trapped(self, seqno: Seqno) -> Epoch:
        """The epoch of a state after `seqno` without trapped events: from the first one on, that of the fork.

        Args:
            seqno: not above the last finished event.
        """
        found = self.covering(seqno).epoch
        forks = (one for one in self.epochs if one.forked and one.forked.events and one.forked.events[0].first <= seqno)
        return max([found, *(one.epoch for one in forks)])

    def gave_up(self, seqno: Seqno, epoch: Epoch) -> bool:
        """True if an epoch's copy of an event was given up: a later epoch begins with that event, or before it."""
        return any(later.epoch > epoch and later.first_seqno <= seqno for later in self.epochs)

    def beginning(self, first: Seqno) -> Seqno:
        """Return the seqno from which to read an event and all after it: its own, or that of a trapped event before it.

        No position of an older epoch between the first trapped event and the end of the trapped ones can be proved:
        `prove` cannot exclude that it has applied a trapped event.
        """
        for record in reversed(self.epochs):
            if record.forked and record.forked.events:
                lowest = record.forked.events[0].first
                if lowest < first <= record.first_seqno:
                    first = lowest
        return first

    @property
    def trapped(self) -> tuple[Range, ...]:
        """The trapped events: a later epoch goes on without them, and readers skip them."""
        return trapped_of(self.epochs)

    def prove_target(self, position: TargetPosition, *, from_first: bool) -> None:
        """Prove a target's position, and the last event of a commit that some of its writers have made.

        Args:
            position: the target's.
            from_first: whether the log can still be read from its first event.

        Raises:
            HistoriesDiffer: as `prove`.
        """
        source_id, head = position.source_id, position.rewound_from
        self.prove(
            position.log_id,
            position.seqno,
            position.epoch,
            source_id=source_id,
            from_first=from_first,
            rewound_from=head,
        )
        if (intent := position.intent) is not None:
            self.prove(intent.log_id, intent.last, intent.epoch, source_id=source_id, rewound_from=head)

    def prove(
        self,
        log_id: LogId,
        seqno: Seqno,
        epoch: Epoch,
        *,
        source_id: str = "",
        from_first: bool = True,
        rewound_from: Seqno = NO_SEQNO,
    ) -> None:
        """The handshake: show that the client's last event is on this history, or refuse the client.

        Args:
            log_id, seqno, epoch: of the client's last event; "", NO_SEQNO, NO_EPOCH before its first.
            source_id: the client's, for the message.
            from_first: whether the log can still be read from its first event.
            rewound_from: of a client that was rewound, its last event before.

        Raises:
            HistoriesDiffer: the client followed another log or another history of it, or needs what is deleted.
        """
        if seqno == NO_SEQNO:
            self._prove_new(log_id, epoch, from_first=from_first)
            return
        if log_id != self.log_id:
            raise HistoriesDiffer(
                f"{REFUSED}The target follows another log",
                hint="point the target to the log it comes from, or fill it again from nothing",
                server_log_id=self.log_id,
                client_log_id=log_id or "none",
                seqno=seqno,
            )
        if seqno > self.last_finished:
            raise HistoriesDiffer(
                f"{REFUSED}The target is ahead of the log: the log lost events that the target has",
                hint="fill the target again (docs/runbooks.md)",
                log_id=log_id,
                seqno=seqno,
                last_finished=self.last_finished,
            )
        self.prove_none_trapped(seqno, epoch, source_id, rewound_from)
        written_by = self.covering(seqno).epoch
        if written_by != epoch:
            raise HistoriesDiffer(
                f"{REFUSED}Log epoch numbers do not match: client source ID={source_id} seqno={seqno} "
                f"server epoch number={written_by} client epoch number={epoch}",
                hint="the target holds events that are not in this log: fill it again from nothing",
            )

    def prove_none_trapped(
        self, seqno: Seqno, epoch: Epoch, source_id: str = "", rewound_from: Seqno = NO_SEQNO
    ) -> None:
        """Refuse a client that has applied an event which a later epoch goes on without.

        A client that was rewound still holds everything up to `rewound_from`.

        Raises:
            HistoriesDiffer: it has; `trapped` and `trapped_events` list them.
        """
        for record in self.epochs:
            # A rewound client read past an epoch that begins up to `rewound_from`, without the trapped events.
            applied = rewound_from if record.first_seqno > rewound_from else seqno
            if record.forked and record.epoch > epoch and overlaps(record.forked.events, Seqno(0), max(seqno, applied)):
                raise HistoriesDiffer(
                    f"{REFUSED}Log epoch numbers do not match: client source ID={source_id} seqno={seqno} "
                    f"server epoch number={record.epoch} client epoch number={epoch}: the target holds events that the "
                    "source's successor lacks",
                    hint="fill the target again (docs/runbooks.md)",
                    rule=Rule.TRAPPED_APPLIED,
                    trapped=record.forked.trapped,
                    trapped_events=ranges_text(record.forked.events),
                )

    def _prove_new(self, log_id: LogId, epoch: Epoch, *, from_first: bool) -> None:
        if log_id not in ("", self.log_id) or epoch != NO_EPOCH:
            raise HistoriesDiffer(
                f"{REFUSED}The target has no event but names a log",
                client_log_id=log_id,
                log_id=self.log_id,
                epoch=epoch,
            )
        if not from_first:
            raise HistoriesDiffer(
                f"{REFUSED}The target is empty and the log's first events are deleted",
                hint=f"{NEW_LOG}, or start from a copy of a target that is further",
                log_id=self.log_id,
            )


def check_offsets(
    position: TargetPosition,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    incomplete: Mapping[int, Seqno] | None = None,
    unfinished: Collection[int] = (),
    *,
    had: Mapping[int, Seqno] | None = None,
) -> None:
    """Check that the partitions still have the messages that a target needs next.

    Where nothing was published for longer than the topic's retention, only Kafka's transaction markers are deleted
    after the target's offset: the target has every event that was deleted.

    Args:
        position: the target's.
        starts, ends: partition → the log start offset and the end offset, from Kafka.
        incomplete: partition → the last finished event of which messages may be deleted; for those that have nothing
            left before the target's offset; None: unknown.
        unfinished: those of which messages of an event are deleted that is not finished.
        had: of a reader of some shards: partition → its last event; None: it has every event up to its position.

    Raises:
        EventsDeleted: retention has deleted it.
        BrokerUnavailable: it has deleted a part of the event that is not finished; the next producer gives that up.
        LogDamaged: the partition ends before it, or lacks it although it has the offset.
    """
    for partition in sorted(starts):
        offset = position.offsets.get(partition, 0)
        last = None if incomplete is None else incomplete.get(partition)
        upto = position.seqno if had is None else had.get(partition, NO_SEQNO)
        lacks = last is None or last > upto
        if offset < starts[partition] and lacks:
            way = "thl apply --relay finishes the commit that the target is within, if there is a relay; else "
            raise EventsDeleted(
                "What the target needs next was deleted by the topic's retention",
                hint=f"{way if position.intent else ''}fill the target again (docs/runbooks.md), and keep the log "
                "for longer",
                partition=partition,
                offset=offset,
                start=starts[partition],
                seqno=position.seqno + 1,
            )
        if offset > ends[partition]:
            raise LogDamaged(
                "The partition ends before what the target has already read: it lost its tail or was re-created",
                partition=partition,
                offset=offset,
                end=ends[partition],
                seqno=position.seqno,
            )
        if last is not None and lacks:  # read again: a broker that has just come back may not show the last records
            raise LogDamaged(
                "The partition has no events where the target resumes, and the target lacks some: it lost its tail",
                hint="fill the target again (docs/runbooks.md)",
                partition=partition,
                offset=offset,
                seqno=last,
                applied=upto,
            )
        if partition in unfinished:
            raise BrokerUnavailable(
                "The topic's retention has deleted a part of the event that is not finished",
                hint="start thl produce, which gives the event up and publishes it again; one that runs and ends it "
                "loses it: keep the log for longer than an event takes",
                partition=partition,
                start=starts[partition],
                applied=position.seqno,
            )
    if unknown := set(position.offsets) - set(starts):
        raise LogDamaged("The topic has fewer partitions than the target has read", missing=sorted(unknown))


def check_before(position: TargetPosition, tails: Mapping[int, Seqno]) -> None:
    """Check that the target has applied every event before the offsets where it resumes.

    If a partition lost its tail and its producer goes on, other events get the same offsets, maybe beyond the target's.

    Args:
        position: the target's.
        tails: partition → the last event finished before the offset where the target resumes, NO_SEQNO if none.

    Raises:
        LogDamaged: there are events that the target lacks.
    """
    for partition, tail in sorted(tails.items()):
        if tail > position.seqno:
            raise LogDamaged(
                "The partition gave offsets again: it lost its tail, and holds events that the target would miss",
                hint="fill the target again (docs/runbooks.md)",
                partition=partition,
                offset=position.offsets.get(partition, 0),
                seqno=tail,
                applied=position.seqno,
            )
