"""MySQL's binary form of GTID sets, in COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS events.

Untagged, little-endian: number of sources (8 bytes); for each its UUID (16), number of intervals (8), and for each
interval its first number and the number after its last (8 each). With tags (MySQL 8.3+, `Gtid_set::encode`) the number
of sources is in the six middle bytes, between two bytes 1, and twice the tag's length and the tag follow each UUID.
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
    """Encodes a set in MySQL's binary form."""
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
    """Decodes a set from MySQL's binary form.

    Raises:
        CorruptBinlog: the bytes contradict the form.
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
            first, after = fields.number(8), fields.number(8)
            if not 1 <= first < after < 1 << 63:
                raise CorruptBinlog("a GTID set has an impossible interval", first=first, after=after)
            gtids.add(f"{source}:{first}", after - first)
    if fields.left:
        raise CorruptBinlog("bytes after a GTID set")
    return gtids
