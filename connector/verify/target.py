"""The interface of the readers of a target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from connector.errors import PreflightError
from connector.verify.values import ComparedColumn, Row


@dataclass(frozen=True, slots=True)
class TargetState:
    """The position and the tables of a target, from its bookkeeping.

    Args:
        seqno: the last applied event's, -1 before the first.
        event_id: event ID of that event.
        gtid_set: the applied GTIDs; None if the source has no GTIDs.
        consistent: false during an initial load.
        tables: `(schema, table)` as published → the name on the target.
        metadata_columns: the columns of these tables that only the target has: target.metadata_columns.
        excluded: excluded table → the first event whose changes of it are not applied.
        loading: table that is being loaded → the first event of its load.
    """

    seqno: int
    event_id: str
    gtid_set: str | None
    consistent: bool
    tables: dict[tuple[str, str], str]
    metadata_columns: dict[tuple[str, str], frozenset[str]]
    excluded: dict[tuple[str, str], int] = field(default_factory=dict)
    loading: dict[tuple[str, str], int] = field(default_factory=dict)


def not_begun(**where: object) -> PreflightError:
    """Return the error of a target to which nothing was applied yet: no difference, for nothing was compared."""
    return PreflightError("nothing was applied to this target yet", hint="thl apply", **where)


class TargetReader(Protocol):
    """Reads a target within one consistent view."""

    def view(self, service: str) -> AbstractContextManager[TargetState]:
        """Open a view: everything that is read in the context shows the target in the returned state.

        Raises:
            TargetUnavailable: it does not answer.
            PreflightError: nothing was applied to it yet.
        """

    def applied(self, service: str) -> bool | None:
        """True if an applier of the service has a session; None: the target does not tell."""

    def called(self, column: str) -> str:
        """Return the name on the target of a column or table."""

    def columns(self, table: tuple[str, str]) -> list[str]:
        """Return the names of a table's columns."""

    def rows(self, table: tuple[str, str], columns: Sequence[ComparedColumn]) -> Iterator[Row]:
        """Return the rows in any order, with the given columns in the form of `connector.verify.values`."""

    def close(self) -> None:
        """End the session."""


def metadata_columns(definition: str) -> frozenset[str]:
    """Return the names of a table's metadata columns from its definition in `thl_tables`."""
    return frozenset(column["name"] for column in json.loads(definition).get("transaction", ()))
