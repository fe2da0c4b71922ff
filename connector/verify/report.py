"""The result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from connector.verify.values import Row


class DifferenceKind(StrEnum):
    """The kind of a difference of a row or table."""

    MISSING = "missing on the target"
    EXTRA = "only on the target"
    CHANGED = "different"
    COUNT = "present a different number of times"
    EXCLUDED = "not applied"
    LOADING = "being loaded"
    MORE = "…"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Args:
        what: the kind of the difference.
        row: the row's key columns and values, or the whole row without a key; "" for the table itself.
        detail: the columns with both values, or the counts.
        key: the values of the row's key; none for the table itself, or without a key.
        values: of a changed row each column that differs, with both values; none if that is not known.
    """

    what: DifferenceKind
    row: str = ""
    detail: str = ""
    key: Row = field(default=(), compare=False, repr=False)
    values: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    def lasts(self, before: Difference) -> bool:
        """Return True if an earlier comparison has found the same: no change of the source has come to it since.

        What differs in other values is in transit: an event that changed a value has mended it.
        """
        same = (self.row, self.what) == (before.row, before.what)
        return same and (not (self.values and before.values) or bool(self.values & before.values))

    def __str__(self) -> str:
        return " ".join(part for part in (self.row or "the table", "is", self.what, self.detail) if part)


@dataclass(frozen=True, slots=True)
class TableReport:
    """The result for one table.

    Args:
        name: `schema.table` of the source.
        rows: the number of rows of the source.
        differences: the first differences; empty if equal.
        target: the published name, if it differs; else "".
    """

    name: str
    rows: int
    differences: tuple[Difference, ...] = ()
    target: str = ""

    @property
    def equal(self) -> bool:
        """True if the table has no difference."""
        return not self.differences


class Verdict(StrEnum):
    """The result of all tables together."""

    EQUAL = "equal"
    DIFFERENT = "different"
    INCOMPLETE = "not all compared"


@dataclass(frozen=True, slots=True)
class Report:
    """The result for all tables.

    Args:
        tables: the compared tables, by name.
        seqno: the target's when the last table was compared.
        exact: true if the target had exactly what the source had committed; else differences may be changes in transit.
        filtered: tables that cannot be compared, as rules publish only some of the changes to their rows.
        left_out: tables that the user excluded.
        lags: why the target lags and made no progress; "" if it did, or does not lag.
    """

    tables: tuple[TableReport, ...]
    seqno: int
    exact: bool = True
    filtered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    lags: str = ""

    @property
    def equal(self) -> bool:
        """True if at least one table was compared and all compared tables are equal."""
        return bool(self.tables) and all(table.equal for table in self.tables)

    @property
    def verdict(self) -> Verdict:
        """The verdict: EQUAL only if every captured table was compared that the user did not exclude."""
        if not all(table.equal for table in self.tables):
            return Verdict.DIFFERENT
        return Verdict.INCOMPLETE if self.filtered or not self.tables else Verdict.EQUAL
