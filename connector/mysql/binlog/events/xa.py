"""XA in the binary log: its statements, and XA_PREPARE events.

MySQL writes an xid in one way (`serialize_xid`, sql/xa.h): `XA START X'gtrid',X'bqual',format`, and so does MariaDB
(`event_xid_t`, sql/log_event.h). The event is that of `XA_prepare_event`, libs/mysql/binlog/event/control_events.h.
Where MySQL has XA START, MariaDB has a flag of the GTID event.
"""

from __future__ import annotations

import re
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

_STATEMENT: Final = re.compile(
    r"\s*XA\s+(?P<verb>START|BEGIN|END|COMMIT|ROLLBACK)\s+(?P<xid>X'[0-9a-fA-F]*',X'[0-9a-fA-F]*',\d+)\s*"
)
_MOST: Final = 64  # bytes of a gtrid or a bqual
CONTROL: Final = {
    "START": "xa start",
    "BEGIN": "xa start",
    "END": "xa end",
    "COMMIT": "xa commit",
    "ROLLBACK": "xa rollback",
}


def xa_statement(sql: str) -> tuple[str, str]:
    """Parses an XA statement as the server logs it.

    Returns:
        `xa start`, `xa end`, `xa commit` or `xa rollback`; the xid.

    Raises:
        Unsupported: it is not in MySQL's form.
    """
    found = _STATEMENT.fullmatch(sql)
    if found is None:
        raise Unsupported("an XA statement that is not in MySQL's form", sql=sql[:200])
    return CONTROL[found["verb"]], found["xid"]


def xa_prepare(body: bytes) -> tuple[str, bool]:
    """Decodes an XA_PREPARE event: one phase or not, format, lengths of gtrid and bqual, both.

    Returns:
        The xid, as statements write it; whether the event also commits the transaction.

    Raises:
        CorruptBinlog: a length is wrong.
    """
    event = Fields(body)
    one_phase = event.number(1) != 0
    return read_xid(event, event.number(4), event.number(4), event.number(4)), one_phase


def read_xid(event: Fields, form: int, gtrid_size: int, bqual_size: int) -> str:
    """Reads gtrid and bqual; returns the xid as statements write it.

    Raises:
        CorruptBinlog: a length is wrong.
    """
    if max(gtrid_size, bqual_size) > _MOST:
        raise CorruptBinlog("an xid is too long", gtrid=gtrid_size, bqual=bqual_size)
    gtrid, bqual = event.take(gtrid_size), event.take(bqual_size)
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{form}"
