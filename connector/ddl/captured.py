"""Reduces a definition to its captured tables.

The result has the statement's effect on the captured tables. A captured table that is renamed to an uncaptured one is
published as DROP TABLE. A rename the other way stops the producer, because the rows are not in the log; so does
CREATE TABLE … LIKE an uncaptured table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final, NoReturn

from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.ddl.syntax.tokens import quoted
from connector.errors import Unsupported
from connector.log.rules import NEW_LOG
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName

RULES_HINT: Final = f"change the rules of these tables (source.filters.tables), and {NEW_LOG}"


class CaptureLevel(Enum):
    """The part of a table that is captured, regarding one definition."""

    WHOLE = auto()  # its rows and this definition
    ROWS = auto()  # its rows; a rule leaves this definition out
    NOTHING = auto()


class Inseparable(Enum):
    """A reason why the captured part of a definition cannot be published alone, and its text in the error."""

    RENAMED_IN = "an uncaptured table is renamed to a captured one, and its rows are not in the log"
    RENAMED_OUT = "a table is renamed to an uncaptured one by a statement that failed"
    EXCHANGED = "rows of two tables are exchanged, and not both are captured"
    CREATED_LIKE = "a table is created like one whose definitions are not captured"
    TEXT = "the uncaptured tables cannot be removed from the statement"


class Captured:
    """Reduces one definition.

    Args:
        statement: the definition, as the source executed it.
        about: the tables that the statement names.
        capture: returns the captured part of a table.
        fold: normalises names as the server compares them.
    """

    def __init__(
        self,
        statement: Statement,
        about: AffectedTables,
        capture: Callable[[TableName], CaptureLevel],
        fold: Callable[[str], str],
    ) -> None:
        self._statement = statement
        self._about = about
        self._capture = capture
        self._fold = fold

    def statements(self) -> tuple[Statement, ...]:
        """Return the statements to publish, in order; none if no captured table is affected.

        Raises:
            Unsupported: the effect on captured tables cannot be expressed without the uncaptured ones.
        """
        about = self._about
        if about.verb == "DROP":
            return self._part(
                [n for n, name in enumerate(about.tables) if self._capture(name) is CaptureLevel.WHOLE], 1
            )
        if about.verb == "RENAME" or len(about.tables) > 1:
            return self._renamed()
        found = self._capture(about.tables[0])
        if about.partner is not None:
            other = self._capture(about.partner)
            if found is not other or found is CaptureLevel.ROWS:
                self._stop(Inseparable.EXCHANGED, about.tables[0], about.partner)
        if found is not CaptureLevel.WHOLE:
            return ()
        if about.like is not None and self._capture(about.like) is not CaptureLevel.WHOLE:
            self._stop(Inseparable.CREATED_LIKE, about.tables[0], about.like, captured=about.tables)
        return (self._statement,)

    def _renamed(self) -> tuple[Statement, ...]:
        """Return the statements for RENAME TABLE: each table from its first name to its last one."""
        pairs = list(zip(self._about.tables[::2], self._about.tables[1::2], strict=True))
        sequences: list[list[int]] = []
        called: dict[TableName, list[int]] = {}
        for number, (old, new) in enumerate(pairs):
            sequence = called.pop(self._folded(old), None)
            if sequence is None:
                sequence = []
                sequences.append(sequence)
            sequence.append(number)
            called[self._folded(new)] = sequence
        kept: list[int] = []
        gone: list[TableName] = []
        for sequence in sequences:
            old, new = pairs[sequence[0]][0], pairs[sequence[-1]][1]
            before, after = self._capture(old), self._capture(new)
            if before is CaptureLevel.NOTHING and after is not CaptureLevel.NOTHING:
                self._stop(Inseparable.RENAMED_IN, old, new, captured=(new,))
            if {before, after} == {CaptureLevel.WHOLE, CaptureLevel.ROWS}:
                raise Unsupported(
                    "a table is renamed, and a rule publishes the definitions of only one of its names",
                    hint=RULES_HINT,
                    tables=f"{old}, {new}",
                    sql=self._statement.sql[:500],
                )
            if before is CaptureLevel.WHOLE:
                if after is CaptureLevel.WHOLE:
                    kept += sequence
                else:
                    gone.append(old)
        if gone and self._statement.options.get("error_code", "0") != "0":
            self._stop(Inseparable.RENAMED_OUT, *gone, captured=gone)
        names = ", ".join(f"{quoted(name.schema)}.{quoted(name.table)}" for name in gone)
        dropped = (self._with_text(f"DROP TABLE IF EXISTS {names}"),) if gone else ()
        return (*dropped, *self._part(sorted(kept), 2))

    def _part(self, kept: list[int], names: int) -> tuple[Statement, ...]:
        """Return the statement with only some items of its list; `names` is the number of names in each item."""
        spans, sql = self._about.spans, self._statement.sql
        items = [(spans[at][0], spans[at + names - 1][1]) for at in range(0, len(spans), names)]
        if len(kept) == len(items):
            return (self._statement,)
        if not kept:
            return ()
        text = ", ".join(sql[slice(*items[number])] for number in kept)
        part = self._with_text(f"{sql[: items[0][0]]}{text}{sql[items[-1][1] :]}")
        captured = tuple(self._about.tables[number * names + n] for number in kept for n in range(names))
        if not _says(part, self._about.verb, captured):
            self._stop(Inseparable.TEXT, *captured, captured=captured)
        return (part,)

    def _with_text(self, sql: str) -> Statement:
        return Statement(self._statement.schema, sql, self._statement.options)

    def _folded(self, name: TableName) -> TableName:
        return TableName(self._fold(name.schema), self._fold(name.table))

    def _stop(self, reason: Inseparable, *tables: TableName, captured: Iterable[TableName] = ()) -> NoReturn:
        partner = () if self._about.partner is None else (self._about.partner,)
        names = [
            str(name)
            for name in captured or (*self._about.tables, *partner)
            if self._capture(name) is not CaptureLevel.NOTHING
        ]
        raise Unsupported(
            f"a definition affects both captured and uncaptured tables: {reason.value}",
            hint=f"source.filters.ignore: [{', '.join(names)}] stops capturing these tables; or "
            f"{NEW_LOG} whose filters capture all of these tables, or none",
            reason=reason.name.lower(),
            tables=", ".join(map(str, tables)),
            sql=self._statement.sql[:500],
        ).with_file_hint("let --do and --ignore choose all of these tables, or none")


def _says(statement: Statement, verb: str, tables: tuple[TableName, ...]) -> bool:
    try:
        about = affected_tables(statement)
    except Unsupported:
        return False
    return (about.verb, about.tables) == (verb, tables)
