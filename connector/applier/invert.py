"""Inverts an event: creates fragments that undo it. In Python with fastavro, because undo is a rare command.

Changes and rows are in the opposite order; an insert becomes a delete, a delete an insert, and an update swaps its
images. The result is compacted like any other event.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import fastavro

from connector.errors import LogDamaged
from connector.log.format import checked
from connector.log.format.decoded_parts import Change, DecodedParts
from connector.schema import fragment_schema, read_change, read_fragment, single_object_header

CRC_BYTES: Final = 4
_INVERSE: Final = {"insert": "delete", "delete": "insert", "update": "update"}


def invert(fragments: Sequence[bytes], at: str = "") -> Iterator[bytes]:
    """Invert an event.

    Args:
        fragments: the fragments of a whole event, in order; their images have all columns.
        at: the topic, for errors.

    Returns:
        Fragments that undo it, in the order to apply them, each with the number of its own rows.

    Raises:
        LogDamaged: the bytes are not fragments of a log.
    """
    schema = _schema()
    parts: list[Change] = []  # the fragments of a change in parts, the last one first
    for fragment in reversed(fragments):
        decoded = read_fragment(fragment, at)
        found = decoded["changes"]
        if any("data" in change for change in found):
            if len(found) != 1:
                raise LogDamaged("a part of a row is not alone in its fragment", at=at)
            parts += found
            if found[0]["start"]:
                continue
            found, parts = _joined(parts, at), []
        changes = [_inverse(change) for change in reversed(found) if "rows" in change]
        rows = sum(len(change["rows"]) for change in changes)
        out = io.BytesIO()
        try:
            for change in changes:
                checked.change(change)
            fastavro.schemaless_writer(out, schema, {**decoded, "changes": changes, "rows": rows})
        except (ValueError, KeyError) as error:
            raise LogDamaged(f"an event cannot be inverted: {str(error)[:200]}", at=at) from error
        body = out.getvalue()[:-CRC_BYTES]
        yield single_object_header() + body + zlib.crc32(body).to_bytes(CRC_BYTES, "big")


def _inverse(change: dict[str, Any]) -> dict[str, Any]:
    return {
        **change,
        "action": _INVERSE[change["action"]],
        "rows": [{"before": row["after"], "after": row["before"]} for row in reversed(change["rows"])],
    }


def _joined(parts: Sequence[Change], at: str) -> Sequence[Change]:
    row_parts = DecodedParts(partial(read_change, at=at), at)
    return [change for part in reversed(parts) for change in row_parts.whole(part["start"], [part])]


@cache
def _schema() -> Any:
    return fastavro.parse_schema(fragment_schema())
