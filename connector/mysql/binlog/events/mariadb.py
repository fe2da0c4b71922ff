"""Bodies of events that only MariaDB writes: GTIDs and compressed events.

Formats are those of MariaDB's `sql/log_event.h` and `sql/log_event.cc` (`Gtid_log_event`, `query_event_uncompress`,
`row_log_event_uncompress`). A transaction begins with its GTID event, which also replaces MySQL's BEGIN and XA START
unless it is STANDALONE: then the transaction is the one statement that follows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connector.errors import Unsupported
from connector.log.gtid.mariadb import DomainPosition
from connector.mysql.binlog.events.xa import read_xid
from connector.mysql.compression import LARGEST, inflated
from connector.mysql.fields import Fields

FORMAT_SERVER: Final = slice(21, 71)  # the server's version in a format description, its header included
QUERY_FIXED: Final = 13

# Flags of a GTID event, and the extra flags of newer servers.
STANDALONE, COMMIT_ID, PREPARED_XA, COMPLETED_XA = 0x01, 0x02, 0x40, 0x80
ENGINES, START_ALTER, COMMIT_ALTER, ROLLBACK_ALTER, THREAD_ID = 0x01, 0x02, 0x04, 0x08, 0x10
KNOWN: Final = ENGINES | START_ALTER | COMMIT_ALTER | ROLLBACK_ALTER | THREAD_ID


@dataclass(frozen=True, slots=True)
class MariaDbGtid:
    """The beginning of a transaction.

    Args:
        gtid: `domain-server-number`.
        alone: the transaction is the one statement that follows, also XA COMMIT and XA ROLLBACK.
        prepares: xid of the XA transaction prepared here, as statements write it; "" for other transactions.
        flags, more_flags: the flags, and those of newer servers.
        numbers: the fields that the flags say are there.
        xid: xid of the XA transaction that is prepared, committed or rolled back here.
    """

    gtid: str
    alone: bool
    prepares: str = ""
    flags: int = field(default=0, compare=False)
    more_flags: int = field(default=0, compare=False)
    numbers: Mapping[str, int] = field(default_factory=dict, compare=False)
    xid: str = field(default="", compare=False)


def is_mariadb(format_event: bytes) -> bool:
    """True if MariaDB wrote a FORMAT_DESCRIPTION event (with its header)."""
    return b"MariaDB" in format_event[FORMAT_SERVER]


def start_of(log_pos: int, size: int, offset: int) -> int:
    """The start of a streamed event: the first one from `offset` on with which it ends at `log_pos` modulo 2^32."""
    return offset + ((log_pos - size - offset) & 0xFFFFFFFF)


def gtid_event(body: bytes, server_id: int) -> MariaDbGtid:
    """Decodes a GTID event: 8 bytes number, 4 domain, 1 flags; then fields by flags, or zeros.

    An xid is 4 bytes format, 1 length of its first part, 1 of its second, both.

    Args:
        body: the event without its header.
        server_id: the header's server ID, of the server that first executed the transaction.

    Raises:
        Unsupported: a flag is not known.
        CorruptBinlog: it ends early, or its xid is too long.
    """
    event = Fields(body)
    number, domain, flags = event.number(8), event.number(4), event.number(1)
    gtid = f"{domain}-{server_id}-{number}"
    numbers = {}
    if flags & COMMIT_ID:
        numbers["commit_id"] = event.number(8)
    xid = ""
    if flags & (PREPARED_XA | COMPLETED_XA):
        xid = read_xid(event, event.number(4), event.number(1), event.number(1))
    more = event.number(1) if event.left else 0
    if more & ~KNOWN:
        raise Unsupported("a GTID event of MariaDB with unknown flags", gtid=gtid, flags=f"{more:#04x}")
    if more & ENGINES:
        numbers["extra_engines"] = event.number(1)
    if more & (COMMIT_ALTER | ROLLBACK_ALTER):
        numbers["start_alter_number"] = event.number(8)
    if more & THREAD_ID and event.left:
        numbers["thread_id"] = event.number(4)
    alone = bool(flags & (STANDALONE | COMPLETED_XA))
    return MariaDbGtid(gtid, alone, xid if flags & PREPARED_XA else "", flags, more, numbers, xid)


def gtid_list(body: bytes) -> DomainPosition:
    """Decodes a GTID_LIST event: the last GTID of each domain and server in the files before.

    Raises:
        CorruptBinlog: a length is wrong.
    """
    fields = Fields(body)
    found = []
    for _ in range(fields.number(4) & (1 << 28) - 1):  # the upper four bits are flags
        domain, server, number = fields.number(4), fields.number(4), fields.number(8)
        found.append(f"{domain}-{server}-{number}")
    return DomainPosition.parse(",".join(found) or "0-0-0")


def plain_query(body: bytes, largest: int = LARGEST) -> bytes:
    """Expands the body of a QUERY_COMPRESSED event to that of a QUERY: only the text is compressed.

    Raises:
        CorruptBinlog: it cannot be decompressed, or a length is wrong.
        Unsupported: another compression than zlib, or more than `largest` bytes.
    """
    event = Fields(body)
    fixed = event.take(QUERY_FIXED)
    head = len(fixed) + int.from_bytes(fixed[11:13], "little") + fixed[8] + 1
    event.take(head - len(fixed))
    return body[:head] + expanded(event.rest(), largest)


def plain_rows(body: bytes, second: bool, update: bool, largest: int = LARGEST) -> bytes:
    """Expands the body of a compressed rows event: only the images are compressed.

    Args:
        body: the event without its header.
        second: true if it is version 2, with extra data before the columns.
        update: true if a second bitmap, of the after images, precedes the images.
        largest: the most bytes of the images.

    Raises:
        CorruptBinlog: it cannot be decompressed, or a length is wrong.
        Unsupported: another compression than zlib, or more than `largest` bytes.
    """
    event = Fields(body)
    event.take(8)
    if second:
        event.take(max(event.number(2) - 2, 0))
    bitmap = (event.packed() + 7) // 8
    event.take(2 * bitmap if update else bitmap)
    images = event.rest()
    return body[: len(body) - len(images)] + expanded(images, largest)


def expanded(data: bytes, largest: int = LARGEST) -> bytes:
    """Expands data of `log_bin_compress`: 1 byte of method and size of the length, the length (big-endian), zlib data.

    Raises:
        CorruptBinlog: it cannot be decompressed, or has another length.
        Unsupported: another compression than zlib, or more than `largest` bytes.
    """
    fields = Fields(data)
    head = fields.number(1)
    if not head & 0x80 or head & 0x70:
        raise Unsupported(f"an event compressed by the unknown method {head >> 4}", method=head >> 4)
    return inflated(fields, head & 0x07, largest, zlib.MAX_WBITS)
