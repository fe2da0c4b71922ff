"""A target: a database with one transaction at a time for the applier's session, and one for each further writer.

A commit of several writers leaves their shares visible one by one. What a reader sees is always what is here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from connector.errors import Fenced, TargetUnavailable
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId
from connector.log.transaction.position import Intent, TargetPosition


@dataclass(frozen=True)
class Applied:
    """An event that is visible on a target, or the share of it that is."""

    seqno: int
    epoch: int
    pieces: tuple[Any, ...]


def share(events: Sequence[Applied], channel: int, writers: int, undivided: Collection[int]) -> list[Applied]:
    """What one of several writers makes of events: of each table that is divided, the keys that fall to it."""
    found = []
    for event in events:
        pieces = tuple(
            (number, table, key)
            for number, table, key in event.pieces
            if channel == (0 if table in undivided else (table + key) % writers)
        )
        if pieces:
            found.append(Applied(event.seqno, event.epoch, pieces))
    return found


@dataclass(eq=False)
class Channel:
    """The open transaction of one of several writers, which has merged its share and holds its lock."""

    target: Target
    token: int
    number: int
    last: int
    rows: list[Applied]
    ended: bool = False  # by the server

    def commit(self) -> None:
        if self.ended:
            raise TargetUnavailable("the server has ended the session")
        self.end()
        self.target.show(self.token, self.rows)
        self.target.channels[self.number] = self.last

    def end(self) -> None:
        """Without a commit: rolled back."""
        self.ended = True
        if self in self.target.merging:
            self.target.merging.remove(self)


@dataclass
class Target:
    """A database: rows and position change together, under the newest token.

    Args:
        rows: the events, in order of their seqnos.
        lacks: the events up to its position, or head, that were left out.
        reached: the newest epoch that it has met, also where its position was taken back to an older one.
        intent: the commit that several writers make, and whether the target was consistent before it.
        channels: of each of several writers, the last event of the last commit of which it made a part.
        undivided: tables that the catalogue says are not to be divided.
        log_id: of what it holds.
        written_by: the relay with which the intent was written.
    """

    checks_token: ClassVar[bool] = True
    commits_at_once: ClassVar[bool] = True
    finds_what_is_there: ClassVar[bool] = True  # when it applies again
    waits_for_channels: ClassVar[bool] = True  # before a claim
    drops_what_no_channel_began: ClassVar[bool] = True
    says_that_it_is_within_a_commit: ClassVar[bool] = True
    takes_channels_back: ClassVar[bool] = True  # with its position
    exports_whole_states_only: ClassVar[bool] = True

    position: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))
    rows: list[Applied] = field(default_factory=list)
    lacks: set[int] = field(default_factory=set)
    reached: Epoch = NO_EPOCH
    token: int = 0
    intent: Intent | None = None
    consistent_before: bool = True
    channels: dict[int, int] = field(default_factory=dict)
    merging: list[Channel] = field(default_factory=list)
    undivided: frozenset[int] = frozenset()
    log_id: LogId = LogId("")
    written_by: object = None
    writers: list[int] = field(default_factory=list)  # the token of each commit
    _late: TargetPosition = field(default_factory=lambda: TargetPosition(service="shop"))

    @property
    def upto(self) -> int:
        """The last event that it holds."""
        return max(self.position.seqno, self.position.rewound_from)

    @property
    def committed(self) -> frozenset[int]:
        """The writers that have made their part of the intent."""
        last = NO_SEQNO if self.intent is None else self.intent.last
        return frozenset(number for number, seqno in self.channels.items() if seqno == last)

    def claim(self) -> tuple[int, TargetPosition]:
        """Take over the target.

        Raises:
            TargetUnavailable: writers are about to commit: try again.
        """
        if self.waits_for_channels and self.merging:
            raise TargetUnavailable("writers are about to commit")
        self.token += 1
        if self.intent is None:
            return self.token, self.position
        if self.drops_what_no_channel_began and not self.committed:
            self.position = replace(self.position, consistent=self.consistent_before)
            self.intent = None
            return self.token, self.position
        intent = replace(self.intent, committed=self.committed)
        return self.token, replace(self.position, intent=intent, consistent=self.consistent_before)

    def end_idle(self) -> None:
        """The server ends sessions that are idle within a transaction."""
        for channel in list(self.merging):
            channel.end()

    def merge(self, token: int, number: int, last: int, rows: list[Applied]) -> Channel:
        """Begin a writer's transaction, up to its COMMIT."""
        self._check(token)
        channel = Channel(self, token, number, last, rows)
        self.merging.append(channel)
        return channel

    def begin(self, token: int, intent: Intent, log_id: LogId) -> None:
        """Write the intent of a commit of several writers."""
        self._check(token)
        self.writers.append(token)
        self.intent, self.consistent_before = intent, self.position.consistent
        if self.says_that_it_is_within_a_commit:
            self.position = replace(self.position, consistent=False)
        self.log_id = log_id

    def export(self, token: int) -> list[Applied] | None:
        """A snapshot for readers; None if this is not the moment."""
        if token != self.token or (self.exports_whole_states_only and not self.position.consistent):
            return None
        return list(self.rows)

    def commit(
        self, token: int, events: list[Applied], position: TargetPosition, left_out: Collection[int] = ()
    ) -> None:
        """Commit events, if they are not there yet, with the position after them."""
        self._check(token)
        self.show(token, events)
        held = {row.seqno for row in self.rows}
        self.lacks = (self.lacks | set(left_out)) - held
        self.intent = None
        if self.takes_channels_back and position.seqno < self.position.seqno:
            self.channels = dict.fromkeys(self.channels, NO_SEQNO)
        self.reached = max(self.reached, position.epoch)
        self.log_id = position.log_id
        if self.commits_at_once:
            self.position = position
        else:  # the position of this commit comes with the next one, too late for a crash between them
            self.position, self._late = self._late, position

    def take_back(self, token: int, position: TargetPosition) -> None:
        """Undo events, with the position."""
        self._check(token)
        self.rows = [row for row in self.rows if row.seqno <= position.seqno]
        self.commit(token, [], position)

    def show(self, token: int, events: list[Applied]) -> None:
        """Add rows to those of their events."""
        self.writers.append(token)
        again = self.finds_what_is_there and self.position.rewound_from != NO_SEQNO
        if not self.rows or (events and events[0].seqno > self.rows[-1].seqno):
            self.rows += events
        elif events:
            there = {row.seqno: row for row in self.rows}
            for event in events:
                row = there.get(event.seqno)
                there[event.seqno] = event if row is None else _joined(row, event, again=again)
            self.rows = [there[seqno] for seqno in sorted(there)]
        if self.intent is not None:
            self.reached = max(self.reached, self.intent.epoch)

    def _check(self, token: int) -> None:
        if self.checks_token and token != self.token:
            raise Fenced("A newer applier has claimed the target", token=token)


def _joined(row: Applied, event: Applied, *, again: bool) -> Applied:
    old = [piece for piece in row.pieces if piece not in event.pieces] if again else list(row.pieces)
    return Applied(row.seqno, event.epoch, tuple(sorted((*old, *event.pieces))))
