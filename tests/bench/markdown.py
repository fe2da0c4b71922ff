"""Renders results as Markdown tables, and puts tables between a document's markers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.result import Result, Row
from tests.bench.spread import Spread

_OF_A_RUN = ("commit", "code", "load before")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        title: above it.
        figure: the shown figure of each row; cases without it stay empty.
    """

    title: str
    figure: str


def cases(results: Iterable[Result]) -> dict[str, list[Row]]:
    """All valid rows by case, in the order in which cases came first."""
    found: dict[str, list[Row]] = {}
    for result in results:
        for row in result.rows:
            if not row.void:
                found.setdefault(row.case, []).append(row)
    return found


def voids(results: Iterable[Result]) -> list[str]:
    """The void rows, with reasons."""
    return [f"{row.case}: {row.void}" for result in results for row in result.rows if row.void]


def spread_of(rows: Iterable[Row], figure: str) -> Spread | None:
    """The spread of one figure over repeats; None if no row has it."""
    values = [row.figures[figure] for row in rows if figure in row.figures]
    return Spread.of(values) if values else None


def table(
    rows: Mapping[str, Sequence[Row]], columns: Sequence[Column], references: Mapping[str, str] | None = None
) -> str:
    """A line per case: median (min–max) of each figure, and the ratio to the reference's first column.

    Args:
        rows: case → repeats.
        columns: the columns; those without any figure are omitted.
        references: case → the case that it is compared with; without any there is no column of ratios.
    """
    shown = [
        column for column in columns if any(column.figure in row.figures for each in rows.values() for row in each)
    ]
    titles = ["", *(column.title for column in shown), *(["ratio"] if references else []), "runs"]
    lines = [_line(titles), "|" + "---|" * len(titles)]
    for case, repeats in rows.items():
        spreads = [spread_of(repeats, column.figure) for column in shown]
        cells = ["" if spread is None else str(spread) for spread in spreads]
        if references:
            cells.append(_ratio(rows, case, references, shown[0].figure))
        lines.append(_line([case, *cells, str(len(repeats))]))
    return "\n".join(lines)


def _ratio(rows: Mapping[str, Sequence[Row]], case: str, references: Mapping[str, str], figure: str) -> str:
    here, there = spread_of(rows[case], figure), spread_of(rows.get(references.get(case, ""), ()), figure)
    return f"{here / there:.2f}" if here and there and there.median else ""


def provenance(results: Sequence[Result]) -> str:
    """Date and settings of figures."""
    newest = results[-1]
    settings = ", ".join(f"{name} {value}" for name, value in newest.settings.items() if value != "")
    commit = newest.machine.get("commit", "unknown")
    loads = " / ".join(result.machine.get("load before", "?") for result in results)
    lines = [
        f"{newest.at} UTC, commit {commit}{f', {settings}' if settings else ''}; load of the machine before: {loads}."
    ]
    void = voids(results)
    if void:
        lines.append("Void, and not in the table: " + "; ".join(void) + ".")
    return "\n".join(lines)


def machine(result: Result) -> str:
    """Machine and versions of a result."""
    told = (f"{name} {value}" for name, value in result.machine.items() if name not in _OF_A_RUN)
    return ", ".join(told) + "."


def replaced(document: str, name: str, text: str) -> str:
    """The document with `text` between `<!-- bench:name -->` and the next `<!-- /bench -->`.

    Raises:
        ValueError: it has no such markers, or several.
    """
    begin, end = f"<!-- bench:{name} -->", "<!-- /bench -->"
    pattern = re.compile(re.escape(begin) + r"(?:(?!<!-- bench:).)*?" + re.escape(end), re.DOTALL)
    found, count = pattern.subn(lambda _: f"{begin}\n{text}\n{end}", document)
    if count != 1:
        raise ValueError(f"the document has {count} places marked {begin} … {end}")
    return found


def marked(document: str) -> list[str]:
    """The names of a document's marked places."""
    return re.findall(r"<!-- bench:([a-z-]+) -->", document)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
