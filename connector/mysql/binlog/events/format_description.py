"""FORMAT_DESCRIPTION events: the layout of the file's events, and whether they have checksums."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.binlog.events.dialect import Dialect, described_dialect
from connector.mysql.binlog.events.event_types import HEADER
from connector.mysql.fields import Fields

CHECKSUMS_SINCE = (5, 6, 1)
CHECKSUMS_SINCE_IN_MARIADB = (5, 3)
EARLY = (5,), (5, 5)  # also MariaDB 5.1 to 5.3
TYPES_BEFORE_CHECKSUMS = 32  # older servers had at most these, later ones have more
NO_CHECKSUM, CRC32 = 0, 1
# Development branches of 5.1 and 5.2 that gave the types other numbers.
RENUMBERED = re.compile(r"5\.[12]\.\d+-a_drop[56]")


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file.

    Args:
        checksum: true if its events end with a CRC-32.
        dialect: the layout of its events; None: today's.
        early: true if MySQL 5.0 or 5.1 wrote it.
        has_algorithm: true if the event names the algorithm of checksums, and has one itself.
    """

    checksum: bool
    dialect: Dialect | None
    early: bool
    has_algorithm: bool = False


def format_description(event: bytes) -> Format:
    """Decodes the event.

    Args:
        event: the whole event, its in-use flag cleared.

    Raises:
        Unsupported: the file has another version, or its events have unknown fixed parts.
        CorruptBinlog: the checksum or a length is wrong.
    """
    fields = Fields(event)
    fields.take(HEADER)
    version = fields.number(2)
    if version != 4:
        raise Unsupported("a binary log of an unknown version; MySQL 5.0 and later write version 4", version=version)
    server = fields.take(50).rstrip(b"\0").decode(errors="replace")
    fields.take(4)
    header = fields.number(1)
    rest = fields.rest()
    algorithm = NO_CHECKSUM
    has_algorithm = _version(server) >= (CHECKSUMS_SINCE_IN_MARIADB if "MariaDB" in server else CHECKSUMS_SINCE)
    if has_algorithm:
        if len(rest) < 5:
            raise CorruptBinlog("a format description ends early", server=server)
        algorithm, checksum = rest[-5], int.from_bytes(rest[-4:], "little")
        # In a log without checksums this event has one, but a server may change the event for the stream and not the
        # checksum. If the checksum fits a log with checksums, the byte of the algorithm is damaged.
        if algorithm != NO_CHECKSUM:
            damaged = algorithm == CRC32 and zlib.crc32(event[:-4]) != checksum
        else:
            damaged = zlib.crc32(event[:-5] + bytes([CRC32])) == checksum
        if damaged:
            raise CorruptBinlog("a format description's checksum is wrong", server=server, checksum=f"{checksum:08x}")
        rest = rest[:-5]
    elif len(rest) > TYPES_BEFORE_CHECKSUMS:
        raise CorruptBinlog("a format description is longer than its server writes it", server=server)
    if algorithm not in {NO_CHECKSUM, CRC32}:
        raise Unsupported("an unknown checksum algorithm", server=server, algorithm=algorithm)
    if RENUMBERED.match(server):
        raise Unsupported("the log of a development branch that gave the types of events other numbers", server=server)
    try:
        early = EARLY[0] <= _version(server) < EARLY[1]
        return Format(algorithm == CRC32, described_dialect(header, rest), early, has_algorithm)
    except Unsupported as error:
        error.where["server"] = server
        raise


def _version(server: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", server)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)
