"""What a comparison says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class What(StrEnum):
    """How a row or table differs."""

    MISSING = "missing on the target"
    EXTRA = "only on the target"
    CHANGED = "different"
    COUNT = "there another number of times"
    EXCLUDED = "not applied"
    MORE = "…"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs.

    Args:
        what: how.
        row: which row: its key's columns and values, or the whole row where there is no key; "" for the table itself.
        detail: the columns with both values, or the counts.
    """

    what: What
    row: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.row or "the table", "is", self.what, self.detail) if part)


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table.

    Args:
        name: `schema.table` of the source.
        rows: of the source.
        differences: the first ones found; empty when equal.
        target: `schema.table` under which it is published, where that is another name; else "".
    """

    name: str
    rows: int
    differences: tuple[Difference, ...] = ()
    target: str = ""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


class Verdict(StrEnum):
    """What all of it comes to."""

    EQUAL = "equal"
    DIFFERENT = "different"
    INCOMPLETE = "not all compared"


@dataclass(frozen=True, slots=True)
class Report:
    """All tables.

    Args:
        tables: those that were compared, by name.
        seqno: the target's when the last of them was compared.
        exact: whether the target had exactly what the source had committed; otherwise what differs may be on its way.
        filtered: tables that cannot be compared, because rules publish only some of the changes to their rows.
        left_out: tables that nobody wanted to be compared.
    """

    tables: tuple[TableReport, ...]
    seqno: int
    exact: bool = True
    filtered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether tables were compared, and all of them are."""
        return bool(self.tables) and all(table.equal for table in self.tables)

    @property
    def verdict(self) -> Verdict:
        """EQUAL where everything that was wanted was compared."""
        if not all(table.equal for table in self.tables):
            return Verdict.DIFFERENT
        return Verdict.INCOMPLETE if self.filtered or not self.tables else Verdict.EQUAL
