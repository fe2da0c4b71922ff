"""Checks that a part of the log can be applied again with the same result, or undone.

An event can be applied again if each row has a key and complete images. So tables without a key, partial row images, a
DDL that changed the target, and a load cannot be applied again. Tables without a key can be undone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum
from functools import partial
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
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.targets.ddl.plan import plan
from connector.targets.target_schema import TargetSchema

CHECK_BYTES: Final = 64 << 20  # bytes of compacted rows after which they are dropped
NAMED: Final = 10  # maximum number of tables that an error names


class SecondPass(Enum):
    """The command that goes over a part of the log a second time, in the words of its errors."""

    REWIND = "applied again"
    UNDO = "undone"

    def hint(self, seqno: int | None = None) -> str:
        """Return the way out of a refusal; `seqno`: the refused event, if it is one."""
        if self is SecondPass.REWIND:
            return (
                "nothing was changed; start with a later --from-seqno, or fill an empty target from the log's beginning"
            )
        end = "--to-seqno of a later event" if seqno is None else f"--to-seqno {seqno} or more"
        return f"nothing was changed; go back less far: {end}"


class ReplayCheck:
    """Checks the events after a position, up to the last one.

    Args:
        topic: the event topic, for errors.
        sequencer: the sequencer for `position`.
        position: the position before the first event.
        last: the last event.
        schema: the target's tables.
        command: the command that needs them.
        left_out: events that were left out, or done by hand.
    """

    def __init__(
        self,
        topic: str,
        sequencer: EventSequencer[Message, Messages],
        position: TargetPosition,
        last: Seqno,
        schema: TargetSchema,
        *,
        command: SecondPass,
        left_out: Collection[int] = (),
    ) -> None:
        self._sequencer = sequencer
        self._last = last
        self._schema = schema
        self._command = command
        self._left_out = left_out
        self._topic = topic
        self._scanner = Scanner(topic)
        self._compactor = Compactor(topic)
        self._row_parts = RowParts(topic)
        self._rows = 0
        self._done = position.seqno

    @property
    def done(self) -> bool:
        """True once the last event was read."""
        return self._done >= self._last

    def accept(self, batch: pa.Table) -> None:
        """Check the events that this batch completes.

        Raises:
            Unsupported: an event cannot be applied again.
            LogDamaged: the log is damaged.
        """
        for part in batch.to_batches():
            for message in (one for messages in self._scanner.scan(part) for one in messages):
                self._sequencer.accept(message.header, message.partition, message.offset, message)
        for release in self._sequencer.release():
            if isinstance(release, Release) and release.seqno <= self._last:
                self._check_event(release)
        if self._compactor.size >= CHECK_BYTES:
            self._compactor.drain()

    def check(self) -> None:
        """Check the tables, after the last event.

        Raises:
            Unsupported: the rows of a table cannot be applied again.
            TargetDiffers: a table's columns differ from those in the log.
        """
        met = [one for one in self._compactor.layouts_seen() if one[0].name not in self._schema.excluded]
        without = sorted({str(layout.name) for layout, _ in met if not layout.key})
        if without and self._command is SecondPass.REWIND:
            raise self._refusal("tables without a key cannot be", keyless=_named(without))
        partial = sorted({str(layout.name) for layout, partial in met if partial})
        if partial:
            raise self._refusal("partial row images cannot be", partial=_named(partial))
        for layout, _ in met:
            self._schema.check(replace(layout, columns=layout.columns + self._schema.transaction))

    def _check_event(self, release: Release[Message]) -> None:
        header = release.header
        if header.metadata.get("snapshot") in EDGES:
            raise self._refusal("an initial load cannot be", header.seqno)
        if header.kind is Kind.LOAD:
            raise self._refusal("a load of a table cannot be", header.seqno)
        if header.outcome is not Outcome.VOID:
            for message in filter(None, map(self._row_parts.whole, release.bodies)):
                if header.kind is Kind.DDL:
                    self._check_ddl(message, header)
                self._rows = self._compactor.add(message, self._rows, partial(self._refuse_statement, header.seqno))
        if release.complete:
            self._rows = 0
            self._done = header.seqno

    def _refuse_statement(self, seqno: Seqno, statement: Statement) -> None:
        raise self._refusal("a change that was logged as a statement cannot be", seqno, sql=statement.sql[:200])

    def _check_ddl(self, message: Message, header: FragmentHeader) -> None:
        for statement in message.statements(self._topic):
            try:
                harmless = header.seqno not in self._left_out
                harmless = harmless and not plan(statement, self._schema, header.commit_time or 0).operations
            except (TargetDiffers, Unsupported):  # the target already has the tables as they are after the DDL
                harmless = False
            if not harmless:
                left_out = header.seqno in self._left_out
                what = "that was skipped or done by hand" if left_out else "that changed the target"
                raise self._refusal(f"a DDL {what} cannot be", header.seqno, sql=statement.sql[:200])

    def _refusal(self, what: str, seqno: int | None = None, **where: object) -> Unsupported:
        return Unsupported(f"{what} {self._command.value}", hint=self._command.hint(seqno), seqno=seqno, **where)


def _named(tables: list[str]) -> str:
    return ", ".join(tables[:NAMED]) + (", …" if len(tables) > NAMED else "")
