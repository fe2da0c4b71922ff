"""The events of a table's load, which lie in the log among those of the stream.

A load of a table begins with its definition (`BEGIN`), goes on with its rows (`ROWS`), and ends (`END`). The rows are
those that the table has at their place of the log. Between `BEGIN` and `END` an applier may have only some of the
table's rows, so it does not expect the row that an event of the stream changes. The rows of a table without a key are
one event (`WHOLE`), which replaces what an applier has of the table.

A repair of a table is one event, too (`REPAIR`): of some keys the rows that the table has at its place of the log, and
deletes, which have the key alone, of the keys that it has not. What an applier has under these keys may be anything.
It neither begins nor ends a load.

A load can be for some targets alone. On the others its events move the position, and change nothing: appliers leave
out their rows unread (`for_others`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from connector.log.transaction.layout import TableName

LOAD: Final = "load"
PART: Final = "load_part"
SCHEMA: Final = "load_schema"
TABLE: Final = "load_table"
TARGETS: Final = "load_targets"


class Part(StrEnum):
    """The part of a table's load that an event is."""

    BEGIN = "begin"
    ROWS = "rows"
    WHOLE = "whole"
    END = "end"
    REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class LoadEvent:
    """An event of the kind `LOAD`, as its metadata tell it.

    Args:
        load: the ID of the load.
        part: the part.
        table: the table, as it is published.
        targets: the IDs of the targets that it is for; none: all.
    """

    load: str
    part: Part
    table: TableName
    targets: tuple[str, ...] = ()

    @property
    def edge(self) -> bool:
        """True if the event changes more than rows, so that it is a barrier, and a commit of its own on a target."""
        return self.part is not Part.ROWS

    @property
    def precedes_rows(self) -> bool:
        """True if it says what an applier does with the rows of the same event."""
        return self.part in (Part.WHOLE, Part.REPAIR)

    def metadata(self) -> dict[str, str]:
        """The metadata of the event's fragments."""
        found = {LOAD: self.load, PART: self.part.value, SCHEMA: self.table.schema, TABLE: self.table.table}
        return {**found, TARGETS: ",".join(self.targets)} if self.targets else found

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> LoadEvent:
        """The event with these metadata.

        Raises:
            ValueError: they are not those of an event of a load.
        """
        try:
            return cls(
                metadata[LOAD],
                Part(metadata[PART]),
                TableName(metadata[SCHEMA], metadata[TABLE]),
                tuple(metadata[TARGETS].split(",")) if TARGETS in metadata else (),
            )
        except (KeyError, ValueError) as error:
            raise ValueError(f"not the metadata of an event of a load: {error}") from error


PASSED_OVER: Final = frozenset({Part.ROWS, Part.WHOLE, Part.END, Part.REPAIR})
"""Parts that appliers of other targets ignore.

BEGIN is not among them: it is logged if the table waits for a load there.
"""


def for_others(metadata: Mapping[str, str], target: str | None) -> bool:
    """Return whether a load is for other targets than one.

    Args:
        metadata: of an event of the load.
        target: the target's ID; "": it has none, so that only loads for all targets are for it; None: there is no
            target, and every load counts.
    """
    return target is not None and TARGETS in metadata and target not in metadata[TARGETS].split(",")
