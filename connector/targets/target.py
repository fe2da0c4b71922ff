"""The contract between the applier and every kind of target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from connector.log.compact.metadata_columns import Value as TransactionValue
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent
from connector.log.transaction.position import TargetPosition
from connector.targets.target_schema import Excluded, TargetSchema


class TargetDatabase(Protocol):
    """A database that the applier keeps equal to the source, one or more whole events at a time.

    Terms: *staged* is everything passed to `stage` and `ddl` since the last `commit` or `discard`. Other sessions do
    not see it, and it is lost with a crash or `close`. A *commit* makes it visible, with the new position: atomically,
    or, if the target has several writers, as an *intent*: the writers commit their shares in transactions of their own,
    and the position follows in another one. Until then other sessions may see some of the shares, and `consistent` is
    false in the target.

    `claim` returns the intent of which an earlier applier has made a part. The caller then stages exactly its events,
    `first` to `last`, without DDL and without leaving any out, and commits once, at `last`, before it does anything
    else.

    Called from one thread. Every method raises `Fenced` if a newer applier has claimed the target,
    `TargetUnavailable` if the server is gone, `TargetDiffers` if the target does not match the log, and
    `ValueNotRepresentable` or `Unsupported` for changes that the target cannot store. After an error only `close` is
    allowed.

    If the target was opened with metadata columns, each table has them after the source's columns, and so have the
    layouts of staged rows. They name the transaction that wrote a row. Rows are not looked up by them; of equal rows
    without a key the newest is deleted first.

    If the target was opened with tables that have a history, it creates the histories: at a claim, with DDL, and with
    the begin of a load. Their rows are staged as inserts of a table of its own (`NetChanges.history_of`), except for
    those of statements, which `ddl` adds. A position that goes back takes the rows of later events out of them.
    """

    @property
    def token(self) -> int:
        """The fencing token of `claim`, once that is committed; 0 before."""

    @property
    def identity(self) -> str:
        """A random name that `claim` gives a target once for each service; "" before, or if it cannot be stored."""

    @property
    def target_schema(self) -> TargetSchema:
        """The tables that the applier created, after the staged changes."""

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        """Claim the target: every older applier of `service` is fenced when this returns.

        Creates missing bookkeeping tables, and missing metadata columns, which are NULL in existing rows. May wait for
        the running commit of an older applier.

        Args:
            service: the service whose log is applied.
            previous_token: the token of this applier before it lost its session, 0 if none. If the target has another
                token, a newer applier has claimed it since: `Fenced`.
            mark: a random name of this applier, stored with its claim: one that was committed and whose answer was lost
                does not fence it. Empty: it has none.

        Returns:
            The position of the last commit, seqno NO_SEQNO on an empty target; with the intent that the caller has to
            finish, if there is one (see Terms).

        Raises:
            ConfigError: tables have other metadata columns, or other columns with the names of metadata columns; or the
                intent is one that this version cannot finish.
        """

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        """Add row changes to the next commit. May be called any number of times; changes are applied in order.

        Args:
            changes: in the order in which to apply them.
            last: true if `commit` follows at once. If not, a target that other sessions write to must not keep locks
                on its tables until then.
        """

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        """Add a change that the source logged as a statement to the next commit, after what was staged before it.

        A target executes it in the transaction of the commit, with the options of its session, or refuses it. It
        refuses what it cannot know to have the same effect as at the source, or cannot roll back; and any, unless it
        was opened to execute them.

        Args:
            statement: the text and its options; or a block of a file that a later statement of the event reads.
            seqno: the event.

        Raises:
            Unsupported: it refuses the statement.
        """

    def set_metadata(self, values: Sequence[TransactionValue], event: Sequence[TransactionValue] = ()) -> None:
        """Set the metadata columns of all staged rows, which are of one event, and the commit time of its history rows.

        Some values are known only at the end of an event, after its first rows were staged. The seqno is known before.

        Args:
            values: one for each metadata column of the target.
            event: the values of `history.EVENT`, if there are rows of histories.
        """

    def ddl(self, ddl: Ddl) -> None:
        """Add a DDL event's statements to the next commit, which covers that event alone.

        Rows of the same event (CREATE TABLE … SELECT) follow by `stage` and apply to the tables after the
        statements. A target whose statements commit by themselves may execute them before such rows, and others see the
        tables then without them; it executes each exactly once, also after a `discard` or a crash.
        """

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        """Add an event of a table's load that is not one of rows alone to the next commit, which covers it alone.

        `begin` makes a table that is not there, or excluded (unless its definition is refused); of another one the
        rows stay. Until `end` its rows are applied as upserts, a row to delete or change may be missing, and
        `consistent` is false in the target. `end` deletes the rows that were not written since `begin`.

        Of a table without a key nothing is applied after `begin` and before `whole`, which deletes all rows; its own
        rows follow by `stage`. A `begin` while a table is being loaded starts over.

        After `repair` the rows of the event follow by `stage`: whatever the target has under their keys, or of their
        values in unique indexes, is replaced. Nothing else of this table changes, and it does not count as loading. If
        deletes of its rows have effects of others, the repair is left out, and logged.

        Args:
            event: the event.
            ddl: its seqno, and for `begin` the statements that define the table.
        """

    def begin_snapshot(self) -> None:
        """Add the start of an initial load to the next commit: it drops all tables that the applier created."""

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Record a DDL event that a user has applied by hand, with the next commit, which covers that event alone.

        The table definitions change as the statement says, and are compared with the tables on the target.

        Returns:
            The tables whose rows the user has changed; `ANY` for unknown tables.

        Raises:
            TargetDiffers: the target's tables do not have the columns, types and keys that the statement leaves.
        """

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Exclude tables from the next commit on: they stay as they are.

        Their rows are counted and not staged. Their DDL is ignored, except for DROP and renames. Tables that are
        already excluded do not change, unless the target refuses their load, too. An initial load that starts after the
        next event includes the tables again.
        """

    def leave_out(self, event: LeftOut) -> None:
        """Record a skipped event and its tables with the next commit, which covers that event alone."""

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        """Commit the staged changes and the position, under the fencing token of `claim`.

        Both are in one target transaction, or, if the target has several writers, in an intent (see Terms). After a
        failure within an intent, the next `claim` returns it if a writer has committed its share, and drops it if none
        has.

        Before the commit the number of rows that each statement inserted, updated or deleted is compared with the log,
        except for tables that are being loaded. While there are some, readers see the target as not consistent; `claim`
        returns `consistent` as it was given here.

        A position before the last one does not undo data; its `rewound_from` is then the last one.

        Args:
            position: the position that `claim` returns from now on: after the last event of the intent that has to be
                finished, if there is one.
            events: every event that the commit covers, ascending; written to `thl_applied` if auditing is on.
        """

    def discard(self) -> None:
        """Discard the staged changes."""

    def close(self) -> None:
        """End the sessions; staged changes are lost. May be repeated."""
