"""`target.on_error: quarantine`: finds the event and the table that a target refuses, and has the table excluded.

With `target.on_error: stop` the same is done for a table that a load makes whole later: the rows of this load are in
the log after the event that the target refuses.

A commit of many events does not say which of them the target refuses, and after an error a target can only be closed.
So the applier begins again at the target's position, each time with smaller commits up to the last refused event, until
the target refuses one event alone: what precedes it is committed by then. The last attempt excludes the table before
that event, whose commit applies the rest of the event and records the exclusion. A process that ends before this commit
has recorded nothing; the next one finds the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

from connector import failpoints as faults
from connector.clock import Clock
from connector.errors import ConnectorError, escaped
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import QUARANTINED, Excluded

LOG: Final = logging.getLogger(__name__)

DIVISOR: Final = 64  # the number of smaller commits in which a refused one is repeated
BY: Final = "thl apply"
REASON_CHARACTERS: Final = 2000
VALUES: Final = frozenset({"row", "rows"})  # fields of errors that have values of rows
HINT: Final = (
    "thl load makes the table whole; DROP TABLE on the source ends the quarantine; with target.on_error: stop the "
    "applier stops instead"
)
LOAD_HINT: Final = "its load makes the table whole: thl load --status"


@dataclass(frozen=True, slots=True)
class RefusedCommit:
    """A commit that the target refuses.

    Args:
        error: the refusal.
        last: the last event.
        events: the number of events.
    """

    error: ConnectorError
    last: Seqno
    events: int


class Quarantine:
    """The search for what a target refuses, over several attempts of one applier.

    Args:
        clock: the clock for the time of the exclusion.
        on_error: `target.on_error`. quarantine: any table may be excluded.
        loaded_after: with stop, returns the tables that a load makes whole after an event, which alone may be excluded;
            None: none may.

    Attributes:
        upto: the last event of the refused commit: up to it commits are small.
    """

    def __init__(
        self,
        clock: Clock,
        on_error: Literal["stop", "quarantine"] = "stop",
        loaded_after: Callable[[Seqno], Collection[TableName]] | None = None,
    ) -> None:
        self._clock = clock
        self._stops = on_error == "stop"
        self._loaded_after = loaded_after
        self._most = 1  # events in a commit
        self._tables: dict[TableName, Excluded] = {}
        self.upto = NO_SEQNO

    def begin(self, target: TargetDatabase, position: TargetPosition) -> None:
        """Exclude the tables that the target's next event is refused for; the commit of that event records it."""
        if position.seqno >= self.upto:
            self._tables.clear()
        if self._tables and position.intent is None:
            target.exclude(self._tables)
            faults.point("apply.after_exclude")

    def room(self, seqno: Seqno, events: int) -> int:
        """The number of events that a commit may get, from an event on.

        Args:
            seqno: the next event.
            events: the number of events that the commit has.
        """
        if seqno > self.upto:
            return 1 << 62
        return max(1, min(self._most - events, self.upto + 1 - seqno))

    def ends(self, last: Seqno, events: int) -> bool:
        """True if a commit of `events` events is to end with `last`."""
        return last <= self.upto and (events >= self._most or last == self.upto)

    def accepts(self, service: str, refused: RefusedCommit | None, error: ConnectorError) -> bool:
        """Return whether another attempt goes on after an error: with smaller commits, or without a table.

        Args:
            service: the service, for the log.
            refused: the commit that the target refuses; None if there is none.
            error: the error that ended the attempt.

        Raises:
            ConnectorError: it is not known which tables are loaded.
        """
        if refused is None or refused.error is not error or not error.tables:
            return False
        names = [TableName(*one) for one in error.tables]
        if self._stops and (self._loaded_after is None or not set(names) <= set(self._loaded_after(refused.last))):
            return False
        if refused.last > self.upto:
            self._tables.clear()
        elif refused.events > self._most:
            return False  # it was to be smaller: another attempt would be the same
        self.upto = refused.last
        fields: dict[str, object] = {"service": service, "seqno": refused.last}
        if refused.events > 1:
            self._most = max(1, refused.events // DIVISOR)
            LOG.warning(
                "the target refuses a commit: searching for the event",
                extra={**fields, "events": refused.events, "why": error.message},
            )
            return True
        self._most = 1
        new = [name for name in names if name not in self._tables]
        if not new:
            return False
        reason = f"{QUARANTINED}{_without_values(error)}\n{error.located}"[:REASON_CHARACTERS]
        entry = Excluded(since=refused.last, at=self._clock.now(), by=BY, reason=reason)
        self._tables |= dict.fromkeys(new, entry)
        way_out = LOAD_HINT if self._stops else HINT
        for name in new:
            why = {"why": error.located, "hint": f"{error.hint}; {way_out}" if error.hint else way_out}
            LOG.error("a table is quarantined: it stays as it is", extra={**fields, "table": name, **why})
        return True


def _without_values(error: ConnectorError) -> str:
    """An error for those who may not read rows, in one line: what a server or a value said is left out."""
    cause = error.__cause__ or error.__context__
    what = error.message if cause is None else f"the target refuses a change ({type(cause).__name__})"
    ids = (f"{name}={value}" for name, value in error.where.items() if name not in VALUES and value is not None)
    return escaped(f"{what} [{' '.join(ids)}]")
