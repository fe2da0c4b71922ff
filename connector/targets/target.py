"""The seam of every target: what it must do, and what it may rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets.target_schema import Excluded, TargetSchema


class Target(Protocol):
    """A database that is kept equal to the source, one whole event or several at a time.

    Terms: *staged* is everything given by `stage` and `ddl` since the last `commit` or `discard`. It is invisible to
    every other session and survives nothing: not a crash, not `close`. A *commit* makes what is staged and the new
    position visible in one moment.

    Called from one thread. Every method raises `Fenced` when a newer applier has claimed the target,
    `TargetUnavailable` when the server is gone, `TargetDiffers` when it is not as the log says, and
    `ValueNotRepresentable` or `Unsupported` for what it cannot hold; after any of them the object is only to be closed.

    Where it was opened with columns of the transaction, each table has them behind its own, and so have the layouts of
    what is staged. They say of a row which transaction wrote it; by them no row is found, but of equal rows without a
    key the newest goes first.
    """

    @property
    def token(self) -> int:
        """The fencing token that `claim` took; 0 before it."""

    @property
    def catalog(self) -> TargetSchema:
        """The tables that we made, as what is staged leaves them."""

    def claim(self, service: str, held: int = 0) -> TargetPosition:
        """Take the target over: every older applier of `service` is fenced when this returns.

        Creates the bookkeeping where it is missing, and the transaction's columns, which are NULL then. May wait for an
        older applier's running commit.

        Args:
            service: whose log is applied.
            held: the token that this applier took before it lost its session, 0 if none. Another one on the target
                means that a newer applier has claimed it since: `Fenced`, instead of taking it back.

        Returns:
            The position as the last commit left it; of an empty one, seqno NO_SEQNO.

        Raises:
            ConfigError: tables have other columns of the transaction, or of a name that these are to have.
        """

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Take row changes for the next commit. May be called any number of times: in order, they add up.

        Args:
            changes: in the order they are to be done.
            last: whether `commit` follows at once; if not, no lock on the target's tables may be held meanwhile
                by a target that others write to.
        """

    def stamp(self, values: Sequence[TransactionValue]) -> None:
        """Take what the transaction's columns hold in all rows that are staged: these are of one event.

        Some of it is told only by the end of an event, when its first rows are staged already. Its seqno never is.

        Args:
            values: one for each column of the transaction that the target has.
        """

    def ddl(self, ddl: Ddl) -> None:
        """Take a DDL event's statements for the next commit, which covers that event alone.

        Rows of the same event (CREATE TABLE … SELECT) come by `stage` afterwards and find the tables as the
        statements leave them.
        """

    def begin_snapshot(self) -> None:
        """Take "an initial load begins" for the next commit: all tables that we made are gone, and nothing is equal."""

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Take a DDL event for done, with the next commit, which covers that event alone: somebody has seen to it.

        What we know of the tables becomes what the statement makes of it, and is compared with what the target has.

        Returns:
            The tables whose rows are somebody else's work; `ANY` for what cannot be told.

        Raises:
            TargetDiffers: the target's tables do not have the columns, types and keys that they have after it.
        """

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Go on without some tables from the next commit on: they stay as they are.

        Their rows are counted and not staged, their DDL is passed over, but for DROP and for what renames them. Those
        that are excluded already stay so as they are. An initial load that begins later than at the next event makes
        them tables like others again.
        """

    def leave_out(self, event: LeftOut) -> None:
        """Note with the next commit, which covers that event alone, that it was left out, and of which tables."""

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Make what is staged visible, with the position, in one target transaction, under our fencing token.

        Row counts of inserts, updates and deletes are checked against what is there, before it is visible.

        A position that is before the last one takes nothing of the data back; its `head` is then the last one.

        Args:
            position: what `claim` is to return from now on.
            events: every event covered, ascending; kept in `thl_applied` where auditing is on.
        """

    def discard(self) -> None:
        """Forget what is staged."""

    def close(self) -> None:
        """End the sessions; what is staged is gone. May be repeated."""
