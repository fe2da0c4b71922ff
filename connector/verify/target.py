"""The seam of the target's readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from connector.errors import TargetDiffers
from connector.verify.values import Column, Row


@dataclass(frozen=True, slots=True)
class TargetState:
    """Where the target is, in its own words.

    Args:
        seqno: the last applied event's, -1 before the first.
        event_id: its event id.
        gtid_set: what is applied; None where the source gives no GTIDs.
        consistent: false during an initial load.
        tables: `(schema, table)` of the source → the name on the target.
        beside: of these the columns that only the target has, for they tell of the transaction that wrote a row.
        excluded: tables that the applier goes on without, and the first event whose changes of them are not applied.
    """

    seqno: int
    event_id: str
    gtid_set: str | None
    consistent: bool
    tables: dict[tuple[str, str], str]
    beside: dict[tuple[str, str], frozenset[str]]
    excluded: dict[tuple[str, str], int] = field(default_factory=dict)


def not_begun(service: str) -> TargetDiffers:
    """That there is nothing to compare yet."""
    return TargetDiffers("no applier has begun on this target: thl apply", service=service)


class TargetReader(Protocol):
    """Reads a target in one view of it, taken by `view`."""

    def view(self, service: str) -> AbstractContextManager[TargetState]:
        """Everything that is read within shows the target at the state that is given.

        Raises:
            TargetUnavailable: it does not answer.
            TargetDiffers: no applier has begun on it.
        """

    def called(self, column: str) -> str:
        """What a column of this name is called on the target."""

    def columns(self, table: tuple[str, str]) -> list[str]:
        """The names of a table's columns."""

    def rows(self, table: tuple[str, str], columns: Sequence[Column]) -> Iterator[Row]:
        """Its rows, in any order, the given columns in the form of `connector.verify.values`."""

    def close(self) -> None:
        """End the session."""


def transaction_columns(definition: str) -> frozenset[str]:
    """The names of the columns of the transaction that a table has, by its definition in `thl_tables`."""
    return frozenset(column["name"] for column in json.loads(definition).get("transaction", ()))
