"""An event's fragments turned round: what undoes it, in the same form. For a rare command, so in Python by fastavro.

Changes and rows come in the opposite order, an insert is a delete of its row, a delete an insert, and an update leads
from its after image to its before image. So what folds changes to net operations folds these, too.
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
from connector.log.format.framing import body_at
from connector.schema import change_schema, fragment_schema, single_object_header

CRC_BYTES: Final = 4
_UNDOES: Final = {"insert": "delete", "delete": "insert", "update": "update"}


def undoing(fragments: Sequence[bytes], at: str = "") -> Iterator[bytes]:
    """Turn an event round.

    Args:
        fragments: of a whole event, whose images have all columns, in order.
        at: the topic they are of, for errors.

    Returns:
        Fragments that undo it, in the order in which to take them, each with the number of its own rows.

    Raises:
        LogDamaged: they are none.
    """
    schema = _schema()
    parts: list[Change] = []  # of a change in several fragments: the last one comes first
    for fragment in reversed(fragments):
        decoded = _read(fragment[body_at(fragment) :], at, schema)
        found = decoded["changes"]
        if any("data" in change for change in found):
            if len(found) != 1:
                raise LogDamaged("a part of a row is not alone in its fragment", at=at)
            parts += found
            if found[0]["start"]:
                continue
            found, parts = _joined(parts, at), []
        changes = [_undone(change) for change in reversed(found) if "rows" in change]
        rows = sum(len(change["rows"]) for change in changes)
        out = io.BytesIO()
        try:
            for change in changes:
                checked.change(change)
            fastavro.schemaless_writer(out, schema, {**decoded, "changes": changes, "rows": rows})
        except (ValueError, KeyError) as error:
            raise LogDamaged(f"an event that is to be undone cannot be: {str(error)[:200]}", at=at) from error
        body = out.getvalue()[:-CRC_BYTES]
        yield single_object_header() + body + zlib.crc32(body).to_bytes(CRC_BYTES, "big")


def _undone(change: dict[str, Any]) -> dict[str, Any]:
    return {
        **change,
        "action": _UNDOES[change["action"]],
        "rows": [{"before": row["after"], "after": row["before"]} for row in reversed(change["rows"])],
    }


def _joined(parts: Sequence[Change], at: str) -> Sequence[Change]:
    chunks = DecodedParts(partial(_read, at=at, schema=_change_schema()), at)
    return [change for part in reversed(parts) for change in chunks.whole(part["start"], [part])]


def _read(data: bytes, at: str, schema: Any) -> Any:
    try:
        return fastavro.schemaless_reader(io.BytesIO(data), schema, None)
    except (EOFError, ValueError, IndexError, OverflowError) as error:
        raise LogDamaged(f"an event that is to be undone cannot be read: {error}", at=at) from error


@cache
def _schema() -> Any:
    return fastavro.parse_schema(fragment_schema())


@cache
def _change_schema() -> Any:
    return fastavro.parse_schema(change_schema(fragment_schema()))
