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
    """

    name: str
    rows: int
    differences: tuple[Difference, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


@dataclass(frozen=True, slots=True)
class Report:
    """All tables.

    Args:
        tables: by name.
        seqno: the target's when the last of them was compared.
        exact: whether the target had exactly what the source had committed; otherwise what differs may be on its way.
        filtered: tables that were not compared, because the source's filters make others of them.
    """

    tables: tuple[TableReport, ...]
    seqno: int
    exact: bool = True
    filtered: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether all tables that were compared are."""
        return all(table.equal for table in self.tables)
