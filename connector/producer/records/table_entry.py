"""A table of the record store, as it is stored, and what becomes of its rows that are not known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from connector.ddl.indexes import TableIndex
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.records.versions import ROW
from connector.targets.table import Table, from_json, to_json


class Unknown(IntEnum):
    """The treatment of the partial image of a row that the store does not know.

    While a load for all targets goes on, a change of such a row is of no matter: the load brings the row. But a row
    that changes its key may get one that the load has passed. It becomes a delete, and the load reads the table again.
    So does a row with differences of a JSON document, which nobody else could apply; where no load for all targets
    brings it, it is refused.
    """

    REFUSED = 0
    STAYS = 1
    DELETED = 2  # if its key changes; else it stays
    FOLLOWED = 3  # it is in the log already, where a delete may be one of these


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table.

    Args:
        number: its rows' number.
        definition: the number of its definition.
        table: the definition.
        reason: why the store may lack rows of it; "": it has all of them.
        since: the event since which it is being loaded; NO_SEQNO: it is not.
        load: the ID of that load.
        everywhere: that load is for all targets.
        lost: why that load may not bring all rows, unless it reads the table once more: a row that the store did not
            know has changed its key meanwhile, or the store has dropped rows that it had brought; "": it brings them.
        keyed: the indexes of the columns that are its rows' keys, as its rows in the log say; None: none has come. They
            may be those of a unique key.
    """

    number: int
    definition: int
    table: Table
    reason: str = ""
    since: Seqno = NO_SEQNO
    load: str = ""
    keyed: tuple[int, ...] | None = None
    everywhere: bool = False
    lost: str = ""

    @property
    def loading(self) -> bool:
        """True while it is being loaded."""
        return self.since != NO_SEQNO

    @property
    def keyless(self) -> bool:
        """True if no key names its rows: the source logs them whole, and the store keeps none."""
        if self.keyed is not None or self.table.key:
            return self.keyed == ()
        indexes = self.table.indexes
        return indexes is not None and not any(one.unique and self._not_null(one) for one in indexes)

    def _not_null(self, index: TableIndex) -> bool:
        columns = [self.table.column(part.column) for part in index.parts]
        return all(column is not None and not column.nullable for column in columns)

    @property
    def prefix(self) -> bytes:
        """The first bytes of its rows' keys."""
        return ROW + self.number.to_bytes(4, "big")

    def to_json(self) -> bytes:
        """The entry as it is stored."""
        return json.dumps(
            {
                "name": list(self.table.name),
                "number": self.number,
                "definition": self.definition,
                "table": to_json(self.table),
                "why": self.reason,
                "since": self.since,
                "load": self.load,
                "keyed": self.keyed,
                "everywhere": self.everywhere,
                "lost": self.lost,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> TableEntry:
        """The entry that `to_json` wrote."""
        stored: dict[str, Any] = json.loads(text)
        table = from_json(TableName(*stored["name"]), stored["table"])
        since = Seqno(int(stored["since"]))
        numbers = int(stored["number"]), int(stored["definition"])
        keyed = None if stored["keyed"] is None else tuple(map(int, stored["keyed"]))
        everywhere, lost = bool(stored["everywhere"]), str(stored["lost"])
        return cls(*numbers, table, stored["why"], since, stored["load"], keyed, everywhere, lost)
