"""A part of the log looked at before it is applied again: whether that must lead to the same state.

Applying an event once more does no harm where each row is found by a key and given whole: then what stands there
afterwards is what the log says. So a table without a key, an image of some columns only, a DDL that did something to
the target, and an initial load make a part of the log one that cannot be gone back over.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import pyarrow as pa

from connector.errors import TargetDiffers, Unsupported
from connector.log.compact.compact import Compactor
from connector.log.compact.scan import Messages, Scanner
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.ids import Kind, Outcome, Seqno
from connector.log.reading.event_range import EDGES
from connector.log.reading.event_sequencer import EventSequencer, Release
from connector.log.transaction.position import TargetPosition
from connector.targets.ddl.plan import plan
from connector.targets.target_schema import TargetSchema

HELD: Final = 64 << 20  # bytes whose rows are looked at together
NAMED: Final = 10  # tables


class ReplayCheck:
    """Events of one log, from a position on, up to one of them.

    Args:
        topic: named in errors.
        ledger: made for `position`.
        position: where it begins.
        last: the last event.
        catalog: the target's tables.
        left_out: events that were left out, or done by hand.
    """

    def __init__(
        self,
        topic: str,
        ledger: EventSequencer[Message, Messages],
        position: TargetPosition,
        last: Seqno,
        catalog: TargetSchema,
        *,
        left_out: Collection[int] = (),
    ) -> None:
        self._ledger = ledger
        self._last = last
        self._catalog = catalog
        self._left_out = left_out
        self._topic = topic
        self._scanner = Scanner(topic)
        self._collapse = Compactor(topic)
        self._chunks = RowParts(topic)
        self._rows = 0
        self._done = position.seqno

    @property
    def done(self) -> bool:
        """Whether the last event was looked at."""
        return self._done >= self._last

    def take(self, batch: pa.Table) -> None:
        """Look at what has become whole with this batch.

        Raises:
            Unsupported: an event that cannot be applied again.
            LogDamaged: whatever the log is found to be.
        """
        for part in batch.to_batches():
            for message in (one for messages in self._scanner.scan(part) for one in messages):
                self._ledger.take(message.header, message.partition, message.offset, message)
        for release in self._ledger.release():
            if isinstance(release, Release) and release.seqno <= self._last:
                self._look(release)
        if self._collapse.size >= HELD:
            self._collapse.take()

    def check(self, *, keyless: bool = False) -> None:
        """Judge the tables, once everything was looked at.

        Args:
            keyless: whether tables without a key are as good as others.

        Raises:
            Unsupported: rows of some cannot be applied again.
            TargetDiffers: one is not as the log has it.
        """
        met = [one for one in self._collapse.met() if one[0].name not in self._catalog.excluded]
        without = sorted({str(layout.name) for layout, _ in met if not layout.key})
        if without and not keyless:
            raise Unsupported(f"tables without a key cannot be applied again: {_named(without)}", hint=_HINT)
        partial = sorted({str(layout.name) for layout, partial in met if partial})
        if partial:
            raise Unsupported(f"of some rows the log has not all columns: {_named(partial)}", hint=_HINT)
        for layout, _ in met:
            self._catalog.check(replace(layout, columns=layout.columns + self._catalog.transaction))

    def _look(self, release: Release[Message]) -> None:
        header = release.header
        if header.metadata.get("snapshot") in EDGES:
            raise Unsupported("an initial load cannot be applied again", hint=_HINT, seqno=header.seqno)
        if header.outcome is not Outcome.VOID:
            for message in filter(None, map(self._chunks.whole, release.bodies)):
                if header.kind is Kind.DDL:
                    self._look_at_ddl(message, header)
                self._rows = self._collapse.add(message, self._rows)
        if release.complete:
            self._rows = 0
            self._done = header.seqno

    def _look_at_ddl(self, message: Message, header: FragmentHeader) -> None:
        for statement in message.statements(self._topic):
            try:
                harmless = header.seqno not in self._left_out
                harmless = harmless and not plan(statement, self._catalog, header.commit_time or 0).operations
            except (TargetDiffers, Unsupported):  # the tables are those after it, not those before
                harmless = False
            if not harmless:
                raise Unsupported(
                    "a DDL that was left out or done by hand cannot be gone back over"
                    if header.seqno in self._left_out
                    else "a DDL that changed the target cannot be gone back over",
                    hint=_HINT,
                    seqno=header.seqno,
                    sql=statement.sql[:200],
                )


_HINT: Final = "nothing was changed; begin behind it, or fill the target again from nothing"


def _named(tables: list[str]) -> str:
    return ", ".join(tables[:NAMED]) + (", …" if len(tables) > NAMED else "")
