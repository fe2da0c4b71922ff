"""A GTID set, as the server wants it with COM_BINLOG_DUMP_GTID.

Untagged, all little-endian: number of uuids (8 bytes); for each the uuid (16), number of intervals (8), and per
interval its first and the one behind its last number (8 each). With tags (MySQL 8.3+, `Tsid` and `Gtid_set::encode`
in its source) the number of uuids stands in the middle six bytes between two that say 1, and behind each uuid
come the tag's length, times two, and the tag.
"""

from __future__ import annotations

import re
import struct
import uuid

from connector.errors import ConfigError

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
INTERVAL = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")
TAGGED = 1

Source = tuple[uuid.UUID, str]
Interval = tuple[int, int]


def encode_gtid_set(text: str) -> bytes:
    """The set in the server's binary form.

    Args:
        text: MySQL's text form, e.g. `uuid:1-3:5:tag:1-4,uuid:7`; "" is the empty set.

    Raises:
        ConfigError: it is not a GTID set.
    """
    sources = _parse(text)
    tagged = any(tag for _, tag in sources)
    count = len(sources) << 8 | TAGGED << 56 | TAGGED if tagged else len(sources)
    parts = [struct.pack("<Q", count)]
    for source, tag in sorted(sources, key=lambda key: (key[0].bytes, key[1])):
        parts.append(source.bytes)
        if tagged:
            parts.append(bytes([len(tag) << 1]) + tag.encode())
        intervals = _merged(sources[source, tag])
        parts.append(struct.pack("<Q", len(intervals)))
        parts += [struct.pack("<QQ", first, last + 1) for first, last in intervals]
    return b"".join(parts)


def _parse(text: str) -> dict[Source, list[Interval]]:
    sources: dict[Source, list[Interval]] = {}
    for part in filter(None, "".join(text.split()).split(",")):
        name, *words = part.split(":")
        if not UUID.fullmatch(name) or not words:
            raise _wrong(text)
        tag = ""
        for word in words:
            found = INTERVAL.fullmatch(word)
            if found:
                first, last = int(found[1]), int(found[2] or found[1])
                if not 0 < first <= last < 2**63 - 1:
                    raise _wrong(text)
                sources.setdefault((uuid.UUID(name), tag), []).append((first, last))
            elif TAG.fullmatch(word.lower()):
                tag = word.lower()
            else:
                raise _wrong(text)
    return sources


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _wrong(text: str) -> ConfigError:
    return ConfigError(f"{text!r} is not a GTID set", hint="SELECT @@GLOBAL.gtid_executed shows one")
