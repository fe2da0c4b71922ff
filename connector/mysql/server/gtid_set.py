"""A GTID set in the server's binary form: of COM_BINLOG_DUMP_GTID, and of the PREVIOUS_GTIDS event.

Untagged, all little-endian: number of sources (8 bytes); for each its uuid (16), number of intervals (8), and per
interval its first number and the one behind its last (8 each). With tags (MySQL 8.3+, `Gtid_set::encode`) the number
of sources stands in the six middle bytes of its eight, between two that say 1, and behind each uuid come twice the
tag's length and the tag.
"""

from __future__ import annotations

import struct
import uuid
from itertools import groupby

from connector.errors import CorruptBinlog
from connector.log.gtid.mysql import GtidSet
from connector.mysql.fields import Fields

TAGGED = 1


def encode_gtid_set(gtids: GtidSet) -> bytes:
    """The set in the server's binary form."""
    sources = [(source, [span for _, span in spans]) for source, spans in groupby(gtids, key=lambda pair: pair[0])]
    tagged = any(":" in source for source, _ in sources)
    count = TAGGED << 56 | len(sources) << 8 | TAGGED if tagged else len(sources)
    parts = [struct.pack("<Q", count)]
    for source, spans in sources:
        name, _, tag = source.partition(":")
        parts.append(uuid.UUID(name).bytes)
        if tagged:
            parts.append(bytes([2 * len(tag)]) + tag.encode())
        parts.append(struct.pack("<Q", len(spans)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in spans]
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> GtidSet:
    """The set from the server's binary form.

    Raises:
        CorruptBinlog: the bytes are not of that form.
    """
    fields = Fields(data)
    gtids = GtidSet()
    head = fields.number(8)
    tagged = head >> 56 == TAGGED
    for _ in range(head >> 8 & (1 << 48) - 1 if tagged else head):
        source = str(uuid.UUID(bytes=fields.take(16)))
        if tagged and (tag := fields.take(fields.number(1) >> 1).decode("ascii", errors="replace")):
            source = f"{source}:{tag}"
        for _ in range(fields.number(8)):
            first, behind = fields.number(8), fields.number(8)
            if not 1 <= first < behind < 1 << 63:
                raise CorruptBinlog(f"a GTID set with the numbers from {first} to {behind}")
            gtids.add(f"{source}:{first}", behind - first)
    if fields.left:
        raise CorruptBinlog("bytes after a GTID set")
    return gtids
