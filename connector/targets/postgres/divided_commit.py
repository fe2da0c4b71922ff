"""Commits of several writers (`target.writers`), and the intent that makes them one.

A large commit without DDL is divided among `Writers`. They merge their shares; then one transaction of the applier's
own session writes the intent; then each writer commits, with its row of `thl_channels`; then a last transaction writes
the position and ends the intent. Until then a reader may see shares of the commit. A claim that finds an intent of
which some writers have committed has the applier stage the same events again, divided in the same way, for those that
have not. What their net changes are depends on how the events are compacted. The applier then compacts them as one: a
table that is not to be divided by those net changes was not divided before.

A claim locks the rows of `thl_channels` first, and so waits for writers that are about to commit; the intent and the
position are written under its token, so an older applier's are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import psycopg

from connector import failpoints as faults
from connector.errors import ConfigError, ConnectorError, LogDamaged, PreflightError
from connector.log.compact.net_changes import NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Intent, TargetPosition
from connector.targets import bookkeeping
from connector.targets.marks import Marks
from connector.targets.postgres.catalog_checks import undivided_tables
from connector.targets.postgres.commit_steps import CommitSteps
from connector.targets.postgres.merge import LateValues, Step, run_steps
from connector.targets.postgres.staging import Staged
from connector.targets.postgres.writer import Writers
from connector.targets.postgres.writer_shares import HASH_VERSION, divisible

DIVIDED_ROWS: Final = 4_000  # below, a commit of one connection takes less time than the further transactions
_NEEDED: Final = frozenset({"thl.thl_intent", "thl.thl_channels", "thl.thl_position.schema_version"})


class ClaimedIntent(NamedTuple):
    """An intent that a claim has found.

    Args:
        intent: the intent, which has to be finished; None: it was dropped, because no writer had committed its share.
        consistent: the target is consistent but for the intent.
    """

    intent: Intent | None
    consistent: bool


class DividedCommit:
    """Divides large commits of a target among writers, and finishes each one by its intent.

    Args:
        session: the applier's own session.
        opened: opens the session of a writer, which has a number from 0 on.
        count: `target.writers`; 1: commits are not divided, but for the rest of one that was.
        metadata: the number of metadata columns of each table.
    """

    def __init__(
        self, session: psycopg.Connection, opened: Callable[[int], psycopg.Connection], count: int, metadata: int
    ) -> None:
        self._session = session
        self._opened = opened
        self._count = count
        self._metadata = metadata
        self._service = ""
        self._intent: Intent | None = None  # that of an earlier applier, which this one finishes
        self._writers: Writers | None = None
        self._undivided: set[TableName] = set()  # tables that this commit does not divide
        self._looked_at: set[TableName] = set()  # in the catalog, for this commit
        self.known = False  # whether the target has `thl_channels`

    def lock(self, service: str) -> None:
        """Wait for an older applier's writers, and keep them from committing; the first statement of a claim."""
        self.known = self._session.execute("SELECT to_regclass('thl.thl_channels')").fetchone() != (None,)
        if self.known:
            self._session.execute("SELECT FROM thl.thl_channels WHERE service = %s FOR UPDATE", (service,))

    def claim(self, service: str, token: int, seqno: Seqno, missing: set[str]) -> ClaimedIntent | None:
        """Take over the channels, within the transaction of a claim.

        Args:
            service: the service.
            token: of the claim.
            seqno: of the target's position.
            missing: what the target's bookkeeping lacks.

        Returns:
            The intent that was found; None if there was none.

        Raises:
            PreflightError: the bookkeeping lacks the tables for several writers.
            ConfigError: another version of the connector has begun a commit that this one cannot finish; or the
                position is another one than before the commit.
        """
        self._service = service
        if lacking := missing & _NEEDED:
            self._check_not_needed(service, lacking)
            return None
        self.known = True
        run = self._session.execute
        run("UPDATE thl.thl_channels SET token = %s WHERE service = %s", (token, service))
        rows = run(bookkeeping.intent_query("%s").encode(), (service,)).fetchall()
        claimed = None
        if rows:
            intent, consistent = bookkeeping.intent_from(rows)
            if intent.committed:
                _check_finishable(service, intent, seqno)
                self._intent = intent
            else:
                self._drop_intent(service, consistent=consistent)
            claimed = ClaimedIntent(self._intent, consistent)
        else:
            # A position that was deleted by hand leaves the channels where they were.
            run("UPDATE thl.thl_channels SET seqno = -1 WHERE service = %s AND seqno > %s", (service, seqno))
        run(
            "INSERT INTO thl.thl_channels SELECT %s, n, -1, %s FROM generate_series(0, %s) n ON CONFLICT DO NOTHING",
            (service, token, self._writer_count - 1 if self._writer_count > 1 else -1),
        )
        return claimed

    def _check_not_needed(self, service: str, lacking: set[str]) -> None:
        """Refuse a target that lacks what several writers need, if there are several, or an intent of some."""
        if self._count > 1 or self._has_intent(service, lacking):
            raise PreflightError(
                f"several writers need {', '.join(sorted(lacking))}, which the account may not create",
                hint="GRANT CREATE, USAGE ON SCHEMA thl TO …, and for a column start once as the owner of the "
                "tables in thl; or target.writers: 1",
            )

    def _has_intent(self, service: str, lacking: set[str]) -> bool:
        """True if there is an intent, though something else is lacking."""
        if "thl.thl_intent" in lacking:
            return False
        query = "SELECT FROM thl.thl_intent WHERE service = %s"
        return self._session.execute(query, (service,)).fetchone() is not None

    def _drop_intent(self, service: str, *, consistent: bool) -> None:
        """Drop an intent of which no writer has committed its share; the target is as it was before it."""
        run = self._session.execute
        run("DELETE FROM thl.thl_intent WHERE service = %s", (service,))
        run(
            "UPDATE thl.thl_position SET consistent = %s, schema_version = CASE schema_version WHEN %s "
            "THEN %s ELSE %s END WHERE service = %s",
            (
                consistent,
                bookkeeping.version_of(intent=True, loading=True),
                bookkeeping.version_of(intent=False, loading=True),
                bookkeeping.version_of(intent=False, loading=False),
                service,
            ),
        )

    @property
    def _writer_count(self) -> int:
        return self._count if self._intent is None else self._intent.writers

    def open(self) -> None:
        """Open the sessions, after the claim."""
        if self._writer_count > 1:
            self._writers = Writers(self._opened, self._writer_count, self._metadata)

    @property
    def staged(self) -> bool:
        """True if rows were staged since the last commit."""
        return self._writers is not None and self._writers.staged

    @property
    def finishing(self) -> bool:
        """True until the intent of an earlier applier is finished: everything is staged here."""
        return self._intent is not None

    def accepts(self, changes: Sequence[NetChanges], *, last: bool) -> bool:
        """Return whether the first changes of a commit of rows alone are to be divided."""
        if self._writers is None or self._count == 1:
            return False
        rows = sum(len(net) for net in changes if divisible(net.layout))
        return bool(rows) and (not last or rows >= DIVIDED_ROWS)

    def stage(self, changes: Sequence[NetChanges], marks: Mapping[TableName, Marks], *, last: bool) -> None:
        """Divide changes, in the order in which to apply them; the writers stage them.

        Args:
            changes: the changes.
            marks: the marks of the tables that have some.
            last: true if the commit follows.
        """
        writers = self._open_writers
        if self._intent is not None:
            undivided = self._intent.undivided
            for net in changes:
                if net.layout.name not in undivided and (what := _keeps_undivided(net)):
                    raise LogDamaged(
                        f"events that were applied in part are not as they were: {net.layout.name} was divided, and "
                        f"now has {what}",
                        hint="fill the target again (docs/runbooks.md)",
                        seqno=self._intent.span,
                        table=net.layout.name,
                    )
            writers.stage(changes, undivided, self._intent.committed, marks, last=last)
            return
        if new := {net.layout for net in changes if net.layout.name not in self._looked_at}:
            self._undivided |= undivided_tables(self._session, new).keys()
            self._looked_at |= {layout.name for layout in new}
        for net in changes:
            if not divisible(net.layout):
                self._undivided.add(net.layout.name)
            elif _moves(net) and net.layout.name not in self._undivided:
                # These rows keep values of the old rows, which may be another writer's.
                self._undivided.add(net.layout.name)
                writers.gather(net.layout.name)
        writers.stage(changes, frozenset(self._undivided), frozenset(), marks, last=last)

    @property
    def _open_writers(self) -> Writers:
        if self._writers is None:
            raise ValueError("nothing is divided with one writer")
        return self._writers

    def set_metadata(self, values: LateValues) -> None:
        """Set the metadata columns of all staged rows."""
        if self._writers is not None:
            self._writers.set_metadata(values)

    def commit(
        self, steps: CommitSteps, before: TargetPosition, position: TargetPosition, first: Step, rest: Sequence[Step]
    ) -> None:
        """Commit what is staged.

        Args:
            steps: makes the statements.
            before, position: the positions before and after the commit.
            first: the first step of each writer's transaction after its lock.
            rest: the steps that end the commit, with the position.
        """
        writers, last = self._open_writers, position.seqno
        if self._intent is not None and last != self._intent.last:
            raise ValueError(f"the commit that was begun ends with event {self._intent.last}, not {last}")
        if last <= before.seqno:
            raise ValueError(f"a commit from event {before.seqno} back to {last} is not divided")
        writers.merge(lambda number: [steps.channel(number, last), first])
        faults.point("target.before_intent")
        if self._intent is None:
            intent = Intent(
                log_id=position.log_id,
                first=Seqno(before.seqno + 1),
                last=last,
                epoch=position.epoch,
                writers=len(writers),
                hash_version=HASH_VERSION,
                undivided=frozenset(self._undivided),
            )
            run_steps(self._session, [Step("BEGIN"), *steps.intent(intent, before, position), Step("COMMIT")])
        faults.point("target.after_intent")
        writers.commit()
        faults.point("target.before_position")
        run_steps(self._session, [Step("BEGIN"), *rest, *steps.end_intent()])

    def committed(self, *, tables: bool) -> None:
        """The commit is complete; `tables`: layouts have changed."""
        self._intent = None
        self._undivided.clear()
        self._looked_at.clear()
        if self._writers is not None:
            self._writers.forget(tables=tables)

    def work(self) -> Iterator[tuple[psycopg.Connection, Sequence[Staged]]]:
        """Yield each writer's session with its staging tables; a writer whose session has ended has none."""
        for writer in self._writers or ():
            with suppress(psycopg.Error):
                yield writer.session, writer.work()

    def name_obstacles(self, error: ConnectorError, *, waited: bool) -> None:
        """Add to an error of a commit what others have made on its tables: since it began, if it is being finished.

        Args:
            error: the error.
            waited: a writer has waited for a lock in vain, perhaps for another writer.
        """
        layouts = {one.layout for writer in self._writers or () for one in writer.staged}
        if waited and layouts:
            besides = undivided_tables(self._session, layouts)
            if triggers := "; ".join(f"{name}: {what}" for name, what in besides.items() if "trigger " in what):
                error.hint = (
                    f"{error.hint}; or a trigger writes into other tables of this commit ({triggers}), so that one "
                    "writer waits for another: set target.writers: 1, or drop the trigger"
                )
        if self._intent is None:
            return
        since = {
            name: made
            for name, made in undivided_tables(self._session, layouts).items()
            if name not in self._intent.undivided
        }
        if since:
            made = "; ".join(f"{name} has got {what}" for name, what in since.items())
            way = (
                f"since this commit of several writers began, {made}: drop it on the target, run thl apply, which "
                "finishes the commit, and create it again"
            )
            error.hint = f"{error.hint}; {way}" if error.hint else way

    def rollback(self) -> None:
        """End the writers' transactions after an error."""
        if self._writers is not None:
            self._writers.rollback()

    def discard(self) -> None:
        """Drop what is staged."""
        self._undivided.clear()
        self._looked_at.clear()
        if self._writers is not None:
            self._writers.discard()

    def close(self) -> None:
        """End the writers' sessions."""
        if self._writers is not None:
            self._writers.close()


def _check_finishable(service: str, intent: Intent, seqno: Seqno) -> None:
    """Check that an intent follows the target's position, and that this version divides as it was divided.

    Raises:
        ConfigError: it does not.
    """
    if intent.first != seqno + 1:
        raise ConfigError(
            f"a commit of several writers follows event {intent.first - 1}, and the target's position is {seqno}: it "
            "was changed by hand",
            hint="where the tables were dropped, too: DELETE FROM thl.thl_intent on the target; else restore the "
            "position, or drop the tables and load the target again",
            service=service,
            seqno=intent.span,
        )
    if intent.hash_version != HASH_VERSION:
        raise ConfigError(
            "another version of the connector was ended within a commit of several writers",
            hint="start that version once: it finishes the commit",
            service=service,
            seqno=intent.span,
            hash_version=intent.hash_version,
            known=HASH_VERSION,
        )


def _keeps_undivided(net: NetChanges) -> str:
    """The reason why one writer alone gets the changes of a table; "" if they can be divided."""
    if not divisible(net.layout):
        return "rows without a key" if not net.layout.key else "keys of floating-point numbers"
    return "rows that lack columns and get another key" if _moves(net) else ""


def _moves(net: NetChanges) -> bool:
    return net.partial is not None and len(net.partial.moved) > 0
