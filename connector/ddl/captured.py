"""The part of a definition that is published, where only some of its tables are captured.

The result is what the statement did to the captured tables. A captured table that gets a name which is not captured
is published as DROP TABLE. A table that gets a captured name brings rows that are not in the log, so that stops; so
does a table that is created like one that is not captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final, NoReturn

from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName

RULES_HINT: Final = "change the rules of these tables (source.filters.tables), and begin a new log (another `service`)"


class CaptureLevel(Enum):
    """The part of a table that is captured."""

    WHOLE = auto()  # its rows and this definition
    ROWS = auto()  # its rows; a rule leaves this definition out
    NOTHING = auto()


class Captured:
    """Decides about the tables of one definition.

    Args:
        statement: the definition, as the source executed it.
        about: the tables that the statement names.
        capture: what is captured of a table.
        fold: how the server compares names.
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
        """The statements that are published, in order; none if no captured table is affected.

        Raises:
            Unsupported: what it does to captured tables cannot be said without those that are not.
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
                self._stop(f"rows of {about.tables[0]} and {about.partner} are exchanged, and not both are captured")
        if found is not CaptureLevel.WHOLE:
            return ()
        if about.like is not None and self._capture(about.like) is not CaptureLevel.WHOLE:
            self._stop(f"{about.tables[0]} is made like {about.like}, whose definitions are not captured", about.tables)
        return (self._statement,)

    def _renamed(self) -> tuple[Statement, ...]:
        """Each table by the name that it had and the name that it ends with, whatever it is called between."""
        pairs = list(zip(self._about.tables[::2], self._about.tables[1::2], strict=True))
        chains: list[list[int]] = []
        called: dict[TableName, list[int]] = {}
        for number, (old, new) in enumerate(pairs):
            chain = called.pop(self._folded(old), None)
            if chain is None:
                chain = []
                chains.append(chain)
            chain.append(number)
            called[self._folded(new)] = chain
        kept: list[int] = []
        gone: list[TableName] = []
        for chain in chains:
            old, new = pairs[chain[0]][0], pairs[chain[-1]][1]
            before, after = self._capture(old), self._capture(new)
            if before is CaptureLevel.NOTHING and after is not CaptureLevel.NOTHING:
                self._stop(f"{old}, which is not captured, gets the name {new}: its rows are not in the log", (new,))
            if {before, after} == {CaptureLevel.WHOLE, CaptureLevel.ROWS}:
                raise Unsupported(
                    f"{old} gets the name {new}: a definition about tables whose definitions are published and about "
                    "some whose are not",
                    hint=RULES_HINT,
                    sql=self._statement.sql[:500],
                )
            if before is CaptureLevel.WHOLE:
                if after is CaptureLevel.WHOLE:
                    kept += chain
                else:
                    gone.append(old)
        if gone and self._statement.options.get("error_code", "0") != "0":
            self._stop(f"{gone[0]} gets a name that is not captured, by a statement that failed", gone)
        names = ", ".join(f"{_quoted(name.schema)}.{_quoted(name.table)}" for name in gone)
        dropped = (self._with_text(f"DROP TABLE IF EXISTS {names}"),) if gone else ()
        return (*dropped, *self._part(sorted(kept), 2))

    def _part(self, kept: list[int], names: int) -> tuple[Statement, ...]:
        """The statement with some of the items of its list alone, each of so many names."""
        places, sql = self._about.places, self._statement.sql
        items = [(places[at][0], places[at + names - 1][1]) for at in range(0, len(places), names)]
        if len(kept) == len(items):
            return (self._statement,)
        if not kept:
            return ()
        text = ", ".join(sql[slice(*items[number])] for number in kept)
        part = self._with_text(f"{sql[: items[0][0]]}{text}{sql[items[-1][1] :]}")
        wanted = tuple(self._about.tables[number * names + n] for number in kept for n in range(names))
        if not _says(part, self._about.verb, wanted):
            self._stop("tables that are not captured cannot be left out of it", wanted)
        return (part,)

    def _with_text(self, sql: str) -> Statement:
        return Statement(self._statement.schema, sql, self._statement.options)

    def _folded(self, name: TableName) -> TableName:
        return TableName(self._fold(name.schema), self._fold(name.table))

    def _stop(self, why: str, captured: Iterable[TableName] = ()) -> NoReturn:
        partner = () if self._about.partner is None else (self._about.partner,)
        names = [
            str(name)
            for name in captured or (*self._about.tables, *partner)
            if self._capture(name) is not CaptureLevel.NOTHING
        ]
        raise Unsupported(
            f"a definition is about captured tables and about some that are not: {why}",
            hint=f"source.filters.ignore: [{', '.join(names)}] goes on without what is captured of this; or begin a "
            "new log (another `service`) whose filters have all of these tables, or none",
            sql=self._statement.sql[:500],
        )


def _says(statement: Statement, verb: str, tables: tuple[TableName, ...]) -> bool:
    try:
        about = affected_tables(statement)
    except Unsupported:
        return False
    return (about.verb, about.tables) == (verb, tables)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
