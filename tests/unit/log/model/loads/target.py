"""A target with one table: strict where the table is whole, tolerant while it is loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from connector.log.epochs.fork import Range, overlaps
from connector.log.ids import NO_SEQNO
from connector.log.transaction.load import LoadEvent, Part, for_others
from tests.unit.log.model.loads.publishing import Event
from tests.unit.log.model.loads.source import Change, Row, Table, completed

BY_HAND: Final[Row] = (61, 61)
Wrong = tuple[int, Row | None]  # a key, and its row; None: there is none


class Stopped(Exception):
    """The target stops, with its reason."""


class Differs(Stopped):
    """A row that an event changes is not there, or is."""


class Repeated(Stopped):
    """A repair is made twice."""


class NotLoaded(Stopped):
    """The key of a row that is not loaded changes, and the image lacks columns."""


class Misled(Stopped):
    """The target has events that a fork goes on without."""


@dataclass
class Stored:
    """What one commit of the target stores.

    Args:
        rows: of the table.
        left_out: the table is left out until its load begins.
        loading: the ID of the load.
        marks: keys that were written since it began.
        seqno: the last event.
        number: the last transaction.
        begun: loads that have begun.
        offset: of the next record in Kafka.
        taken: the events that were applied.
        lacks: a key whose row somebody deleted by hand, or wrote.
        written: it was written; a deleted one stays so until an event that changes it stops the target.
        repaired: the repairs that were applied.
    """

    rows: Table
    left_out: bool
    loading: str | None = None
    marks: set[int] = field(default_factory=set)
    seqno: int = NO_SEQNO
    number: int = 0
    begun: int = 0
    offset: int = 0
    taken: list[int] = field(default_factory=list)
    lacks: int | None = None
    written: bool = False
    repaired: set[str] = field(default_factory=set)

    def copy(self) -> Stored:
        return replace(
            self, rows=dict(self.rows), marks=set(self.marks), taken=list(self.taken), repaired=set(self.repaired)
        )


class Target:
    """A target, and its applier.

    Args:
        id: by which loads name it.
        rows: of its table, at first.
        left_out: its applier leaves the table out, until a load begins.
        wrong: for each load, the rows that are wrong when it begins.
        repairs: the keys of each repair that was asked for.
    """

    sweeps = True
    tolerates = True
    strict_after_end = True
    marks_rows_of_loads = True
    marks_rows_of_the_stream = True
    marks_whole_rows_only = True
    marks_begin_with_the_load = True
    needs_the_loaded_row = True
    stores_marks_with_rows = True
    skips_trapped = True
    repairs_by_upserts = True
    repairs_delete = True

    def __init__(
        self,
        id: str,
        rows: Table,
        *,
        left_out: bool,
        wrong: Sequence[Sequence[Wrong]] = (),
        repairs: Mapping[str, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self.id = id
        self.now = Stored({} if left_out else dict(rows), left_out)
        self.committed = self.now.copy()
        self.wrong = wrong
        self.repairs = repairs
        self.stopped: Stopped | None = None
        self.sets_aside_at: int | None = None  # the event that it refuses, before which it leaves the table out

    @property
    def whole(self) -> bool:
        """The table is as the source's at the position."""
        return not self.now.left_out and self.now.loading is None

    def commit(self) -> None:
        self.committed = self.now.copy()

    def crash(self) -> None:
        """What is not committed is gone."""
        marks = self.now.marks
        self.now = self.committed.copy()
        if not self.stores_marks_with_rows:
            self.now.marks = marks

    def leave_out(self) -> None:
        """Leave the table out from the next event on."""
        self.now.left_out, self.now.loading, self.now.marks, self.now.lacks = True, None, set(), None

    def prove(self, trapped: Sequence[Range]) -> None:
        """Check that it has nothing that a fork goes on without.

        Raises:
            Misled: it has.
        """
        if any(overlaps(trapped, seqno, seqno) for seqno in self.now.taken):  # type: ignore[arg-type]
            raise Misled("trapped events were applied")

    def accept(self, event: Event, trapped: Sequence[Range]) -> None:
        """Apply the next event, unless a fork goes on without it.

        Raises:
            Stopped: the reason why not.
        """
        skipped = self.skips_trapped and overlaps(trapped, event.seqno, event.seqno)  # type: ignore[arg-type]
        if not skipped:
            if event.seqno == self.sets_aside_at:
                self.leave_out()
            if event.load is not None:
                if not for_others(event.load.metadata(), self.id):
                    self._load(event.load, event.rows, event.gone)
            elif not self.now.left_out:
                for change in event.changes:
                    self._change(change)
                if event.truncates:
                    self.now.rows, self.now.lacks = {}, None
            self.now.number = event.number or self.now.number
            self.now.taken.append(event.seqno)
        self.now.seqno = event.seqno  # type: ignore[assignment]

    def _load(self, event: LoadEvent, rows: Sequence[tuple[int, Row]], gone: Sequence[int]) -> None:
        now = self.now
        if event.part is Part.REPAIR:
            if event.load in now.repaired:
                raise Repeated(f"the repair {event.load} is made twice")
            now.repaired.add(event.load)
        if event.part is Part.BEGIN:
            if now.left_out:
                now.rows, now.left_out = {}, False
            elif now.loading is None:
                for key, row in self.wrong[now.begun] if now.begun < len(self.wrong) else ():
                    now.rows.pop(key, None)
                    if row is not None:
                        now.rows[key] = row
            now.begun += 1
            now.loading, now.lacks = event.load, None
            if self.marks_begin_with_the_load:
                now.marks = set()
        elif now.left_out:
            return
        elif event.part is Part.REPAIR:
            if now.loading is None and not self.repairs_by_upserts and any(key in now.rows for key, _ in rows):
                raise Differs("there is a row of a repair")
            now.rows.update(rows)
            now.marks.update(key for key, _ in rows)
            for key in gone if self.repairs_delete else ():
                now.rows.pop(key, None)
            now.lacks = None if now.lacks in self.repairs[event.load] else now.lacks
        elif event.part is Part.ROWS:
            now.rows.update(rows)
            now.lacks = None if now.lacks in now.rows else now.lacks
            if self.marks_rows_of_loads:
                now.marks.update(key for key, _ in rows)
        elif event.part is Part.END and now.loading is not None:
            if self.sweeps:
                now.rows = {key: row for key, row in now.rows.items() if key in now.marks}
            now.loading = None

    def _change(self, change: Change) -> None:
        now, stored = self.now, self.now.rows.get(change.before) if change.before is not None else None
        loading = now.loading is not None
        strict = not self.tolerates if loading else self.strict_after_end
        if strict:
            if change.before is not None and stored is None:
                raise Differs(f"no row of key {change.before}")
            if change.after is not None and change.after != change.before and change.after in now.rows:
                raise Differs(f"there is a row of key {change.after}")
        loaded = change.before in now.marks and stored is not None
        if change.partial:
            if change.after == change.before and stored is None:
                return
            if change.after != change.before and loading and self.needs_the_loaded_row and not loaded:
                raise NotLoaded(f"key {change.before} is not loaded")
        if change.before is not None:
            now.rows.pop(change.before, None)
        if change.after is not None:
            row = completed(change.row, stored or (None, None))
            now.rows[change.after] = row
            whole = not change.partial or change.after != change.before
            if loading and self.marks_rows_of_the_stream and (whole or not self.marks_whole_rows_only):
                now.marks.add(change.after)
