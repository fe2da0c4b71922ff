"""One commit of an applier. At each of its steps the applier may be stopped or killed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.position import Intent, TargetPosition
from tests.unit.log.model.simulation.log_reading import Ready
from tests.unit.log.model.simulation.relay import Record, Relay
from tests.unit.log.model.simulation.target import Applied, Channel, Target, share


def position_after(at: TargetPosition, log_id: LogId, last: Ready, offsets: dict[int, int]) -> TargetPosition:
    """The position of a target once an event is the last on it."""
    (event, event_id), head = last, at.rewound_from
    return TargetPosition(
        service="shop",
        log_id=log_id,
        seqno=Seqno(event.seqno),
        epoch=Epoch(event.epoch),
        event_id=event_id,
        offsets=offsets,
        consistent=event.seqno >= head,
        rewound_from=head if event.seqno < head else NO_SEQNO,
    )


class Commit:
    """Events become visible on a target with the position after them, in one transaction or in several.

    Args:
        target: the target.
        token: of the applier.
        at: the target's position before; with an intent if it is to be made whole.
        after: its position after the events.
        writers: into so many transactions the commit is divided.
        relay: gets the events before the target does.
    """

    notes_what_is_left_out = True  # in the same commit
    writes_the_intent_first = True  # before any channel commits
    ends_the_intent_last = True  # with the position, once all channels have committed
    keeps_the_number = True  # of writers, of an intent
    keeps_what_is_undivided = True  # in an intent
    leaves_out_what_is_committed = True
    writes_the_relay_first = True

    def __init__(
        self,
        target: Target,
        token: int,
        *,
        at: TargetPosition,
        after: TargetPosition,
        writers: int,
        relay: Relay | None,
    ) -> None:
        self._target, self._token, self._at, self.after = target, token, at, after
        self._writers, self._relay = writers, relay
        self._merged: list[Channel] = []
        self.whole = False  # the target has all of it

    def roll_back(self) -> None:
        """End what is open."""
        for channel in self._merged:
            channel.end()

    def steps(self, kept: Sequence[Ready], out: Collection[int]) -> Iterator[str]:
        """Make the events visible.

        Args:
            kept: the events.
            out: those that are left out beside them.
        """
        events = [event for event, _ in kept]
        if self._relay is not None and self.writes_the_relay_first:
            yield from self._write_relay(self._relay, kept)
        left_out = out if self.notes_what_is_left_out else ()
        if self._at.intent is not None or (self._writers > 1 and not out and len(events[0].pieces) > 1):
            committing = self.divided(events)
            if not self.ends_the_intent_last:
                yield from takewhile(lambda step: step != "wrote the intent", committing)
                self._target.commit(self._token, [], self.after, left_out)
            yield from committing
            if not self.ends_the_intent_last:
                return
            events = []
        self._target.commit(self._token, events, self.after, left_out)
        self.whole = True
        if self._relay is not None and not self.writes_the_relay_first:
            yield from self._write_relay(self._relay, kept)

    def _write_relay(self, relay: Relay, kept: Sequence[Ready]) -> Iterator[str]:
        before = self._at.seqno
        for event, event_id in kept:
            relay.write([Record(self.after.log_id, before, event, event_id)])
            before = Seqno(event.seqno)
        yield "wrote the relay"
        relay.sync()
        yield "synced it"

    def divided(self, events: Sequence[Applied]) -> Iterator[str]:
        """The shares of several writers, of which each commits for itself."""
        target, found = self._target, self._at.intent
        intent = found or Intent(
            first=Seqno(self._at.seqno + 1),
            last=self.after.seqno,
            epoch=self.after.epoch,
            writers=self._writers,
            hash_version=1,
            undivided=target.undivided,
            log_id=self.after.log_id,
        )
        self._merged = []
        for number, rows in self._shares(events, intent).items():
            if rows:
                self._merged.append(target.merge(self._token, number, self.after.seqno, rows))
                yield f"merged {number}"
        if found is None and self.writes_the_intent_first:
            target.begin(self._token, intent, self.after.log_id)
            target.written_by = self._relay
            yield "wrote the intent"
        turn = self._token % max(1, len(self._merged))
        for channel in (*self._merged[turn:], *self._merged[:turn]):
            channel.commit()
            yield f"committed {channel.number}"

    def _shares(self, events: Sequence[Applied], intent: Intent) -> dict[int, list[Applied]]:
        writers = intent.writers if self.keeps_the_number else self._writers
        undivided = intent.undivided if self.keeps_what_is_undivided else self._target.undivided
        shares = {number: share(events, number, writers, undivided) for number in range(writers)}
        if self.leaves_out_what_is_committed:
            shares = {number: rows for number, rows in shares.items() if number not in intent.committed}
        return shares
