"""Several writers of one PostgreSQL target: sessions that stage, merge and commit their shares of a commit at once.

A share has all net changes of its keys, so that no order is needed between shares. Each writer's transaction locks and
moves the writer's row of `thl_channels`, under the token of the applier's claim. All writers merge before the first
one commits: an error up to there undoes the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final

import psycopg

from connector import failpoints as faults
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.marks import Marks
from connector.targets.postgres.direct_copy import DirectRows
from connector.targets.postgres.errors import translated
from connector.targets.postgres.merge import LateValues, Step, commit, run_steps
from connector.targets.postgres.staging import Staged, Staging
from connector.targets.postgres.writer_shares import divide
from connector.targets.target_schema import of_table

AWAKE_SECONDS: Final = 3.0  # between two statements of a writer that has merged and waits for others


class Writer:
    """One writer.

    Args:
        session: its own session, in autocommit.
        metadata: the number of metadata columns of each table.
    """

    def __init__(self, session: psycopg.Connection, metadata: int) -> None:
        self.session = session
        self.staging = Staging(session, metadata)
        self.staged: list[Staged | DirectRows] = []
        self._last: dict[TableLayout, Staged | DirectRows] = {}

    def stage(self, shares: Iterable[NetChanges], marks: Mapping[TableName, Marks], *, last: bool) -> None:
        """Stage shares, in their order; `last`: the commit follows."""
        for net in shares:
            before = self._last.get(net.layout)
            with of_table(net.layout.name), translated():
                table = self.staging.accept(net, before, marks.get(net.layout.name), last=last)
            if table is not before:
                self.staged.append(table)
                self._last[net.layout] = table

    def take_over(self, other: Writer, table: TableName) -> None:
        """Take over the rows of a table that another writer has staged, behind those staged here."""
        moved = [one for one in other.staged if one.layout.name == table]
        self.staged += [
            one if isinstance(one, DirectRows) else self.staging.copied(one, other.session) for one in moved
        ]
        for one in moved:
            other.staging.drop(one)
            other.staged.remove(one)
        for writer in (self, other):
            writer.forget_last(table)

    def forget_last(self, table: TableName) -> None:
        """Stage later rows of a table behind all that are staged, in a staging table of their own."""
        self._last = {layout: one for layout, one in self._last.items() if layout.name != table}

    def set_metadata(self, values: LateValues) -> None:
        """Set the metadata columns of all staged rows."""
        for table in self.staged:
            table.set_metadata(values)
        self._last.clear()  # later rows may be of other transactions

    def merge(self, first: Sequence[Step]) -> None:
        """Run everything of the writer's transaction but COMMIT, and check what COMMIT would."""
        steps = [Step("BEGIN"), *first]
        for rows in self.staged:
            steps = self.staging.merge(steps, rows)
        run_steps(self.session, [*steps, Step("SET CONSTRAINTS ALL IMMEDIATE")])

    def work(self) -> list[Staged]:
        """The staging tables of a commit that was rolled back."""
        return self.staging.rolled_back(self.staged)

    def commit(self) -> None:
        """End the writer's transaction."""
        faults.point("target.before_channel")
        commit(self.session)
        faults.point("target.after_channel")

    def forget(self) -> None:
        """The staged rows are committed."""
        self.staged.clear()
        self._last.clear()

    def discard(self) -> None:
        """Drop the staged rows."""
        for table in self.staged:
            self.staging.drop(table)
        self.forget()


class Writers:
    """The writers of one target.

    Args:
        opened: opens the session of a writer, which has a number from 0 on.
        count: number of writers.
        metadata: the number of metadata columns of each table.

    Raises:
        psycopg.Error: the server does not accept as many sessions.
    """

    def __init__(self, opened: Callable[[int], psycopg.Connection], count: int, metadata: int) -> None:
        self._pool = ThreadPoolExecutor(count, "thl-writer")
        self._writers: list[Writer] = []
        try:
            for number in range(count):
                self._writers.append(Writer(opened(number), metadata))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """The number of writers."""
        return len(self._writers)

    def __iter__(self) -> Iterator[Writer]:
        """Yield each writer."""
        return iter(self._writers)

    @property
    def staged(self) -> bool:
        """True if rows were staged since the last commit."""
        return any(writer.staged for writer in self._writers)

    @property
    def busy(self) -> dict[int, Writer]:
        """The writers that have rows to commit, by their number."""
        return {number: writer for number, writer in enumerate(self._writers) if writer.staged}

    def gather(self, table: TableName) -> None:
        """Have the first writer stage all rows of a table that are staged."""
        first, *others = self._writers
        for other in others:
            first.take_over(other, table)

    def stage(
        self,
        changes: Iterable[NetChanges],
        undivided: frozenset[TableName],
        without: frozenset[int],
        marks: Mapping[TableName, Marks],
        *,
        last: bool,
    ) -> None:
        """Divide changes among the writers, which stage their shares at once.

        Args:
            changes: in the order in which to apply them.
            undivided: tables all of whose changes go to the first writer.
            without: writers whose shares are dropped: they have committed them before.
            marks: the marks of the tables that have some.
            last: true if the commit follows.
        """
        shares: list[list[NetChanges]] = [[] for _ in self._writers]
        for net in changes:
            if net.layout.name in undivided:
                shares[0].append(net)
                continue
            for share, mine in zip(divide(net, len(shares)), shares, strict=True):
                if share is not None:
                    mine.append(share)
        self._each(
            lambda number, writer: writer.stage(shares[number], marks, last=last),
            [number for number, mine in enumerate(shares) if mine and number not in without],
        )

    def set_metadata(self, values: LateValues) -> None:
        """Set the metadata columns of all staged rows."""
        for writer in self._writers:
            writer.set_metadata(values)

    def merge(self, first: Callable[[int], Sequence[Step]]) -> None:
        """Merge all staged rows, each writer in an open transaction.

        Args:
            first: the first steps of a writer's transaction.
        """
        self._each(lambda number, writer: writer.merge(first(number)), list(self.busy))

    def commit(self) -> None:
        """Commit the open transactions at once."""
        self._each(lambda _, writer: writer.commit(), list(self.busy))

    def forget(self, *, tables: bool) -> None:
        """The staged rows are committed.

        Args:
            tables: layouts have changed: drop the idle staging tables.
        """
        for writer in self._writers:
            writer.forget()
            if tables:
                writer.staging.forget()

    def rollback(self) -> None:
        """End the open transactions; a writer whose session has ended has none."""
        for writer in self._writers:
            with suppress(psycopg.Error):
                writer.session.execute("ROLLBACK")

    def discard(self) -> None:
        """Drop the staged rows."""
        for writer in self._writers:
            writer.discard()

    def close(self) -> None:
        """End the sessions."""
        for writer in self._writers:
            writer.session.close()
        self._pool.shutdown()

    def _each(self, do: Callable[[int, Writer], None], numbers: Sequence[int]) -> None:
        """Call for some writers at once; raise the first error when all have ended.

        Raises:
            ConnectorError, psycopg.Error: of one of the writers.
        """
        running: dict[Future[None], Writer] = {
            self._pool.submit(do, number, self._writers[number]): self._writers[number] for number in numbers
        }
        waiting = set(running)
        while waiting:
            _, waiting = wait(waiting, AWAKE_SECONDS)
            for one in running.keys() - waiting if waiting else ():
                # The server ends a session that is idle within a transaction.
                with suppress(psycopg.Error):
                    running[one].session.execute("SELECT 1")
        for one in running:
            one.result()
