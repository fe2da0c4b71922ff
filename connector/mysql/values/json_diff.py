"""Applies differences to JSON documents (binlog_row_value_options=PARTIAL_JSON).

The differences are those of MySQL's `sql-common/json_diff.cc`: one after the other an operation, a path and, unless
something is removed, a value in binary JSON. They are applied to the binary document
(`sql-common/json_binary.h`), of which only the paths are opened; `jsontext` prints the rest, so that numbers, times and
decimals stay unchanged.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields
from connector.mysql.values.jsontext import text_of

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL, STRING, OPAQUE = 0, 1, 2, 3, 4, 12, 15
SIZES: Final = {LITERAL: 1, 5: 2, 6: 2, 7: 4, 8: 4, 9: 8, 10: 8, 11: 8}  # of types with a fixed size
MAX_GROWTH: Final = (
    16  # as in `jsontext`: entries may share an offset, so the text of a small document could have gigabytes
)

_LEG = re.compile(r'\.(?P<quoted>"(?:[^"\\]|\\.)*")|\.(?P<name>[^.\[\]"*\s]+)|\[(?P<last>last-?)?(?P<cell>\d*)\]')


class Operation(IntEnum):
    """The operation of a difference."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


class _Value:
    """A value: closed (a type and bytes that begin with it), or opened (its members or elements)."""

    __slots__ = ("data", "elements", "members", "type")

    def __init__(self, type_: int, data: memoryview) -> None:
        self.type = type_
        self.data = data
        self.members: dict[bytes, _Value] | None = None
        self.elements: list[_Value] | None = None

    def open(self) -> None:
        """Opens a container; does nothing for other values."""
        if self.type > LARGE_ARRAY or self.members is not None or self.elements is not None:
            return
        wide = 4 if self.type in (LARGE_OBJECT, LARGE_ARRAY) else 2
        count, size = (_number(self.data, at * wide, wide) for at in (0, 1))
        if size > len(self.data):
            raise CorruptBinlog("a JSON container is longer than its document")
        inside = self.data[:size]
        keyed = self.type in (SMALL_OBJECT, LARGE_OBJECT)
        entries = 2 * wide + count * (wide + 2 if keyed else 0)
        found = []
        for nth in range(count):
            at = entries + nth * (wide + 1)
            kind = _number(inside, at, 1)
            if kind in (LITERAL, 5, 6) or (wide == 4 and kind in (7, 8)):
                found.append(_Value(kind, inside[at + 1 : at + 1 + wide]))
            else:
                found.append(_Value(kind, inside[_number(inside, at + 1, wide) :]))
        if not keyed:
            self.elements = found
            return
        self.members = {}
        for nth, value in enumerate(found):
            at = 2 * wide + nth * (wide + 2)
            start, length = _number(inside, at, wide), _number(inside, at + wide, 2)
            if start + length > size:
                raise CorruptBinlog("a key in JSON is outside of its container")
            self.members[bytes(inside[start : start + length])] = value

    def printed(self, out: bytearray, room: int) -> None:
        """Appends its text as MySQL prints it; `room` limits the length of `out`."""
        if len(out) > room:
            raise CorruptBinlog("the text of a JSON document is longer than its size allows")
        if self.members is not None:
            out += b"{"
            # MySQL's order: shorter keys first, then by their bytes.
            for nth, key in enumerate(sorted(self.members, key=lambda key: (len(key), key))):
                out += (b", " if nth else b"") + _key(key) + b": "
                self.members[key].printed(out, room)
            out += b"}"
        elif self.elements is not None:
            out += b"["
            for nth, element in enumerate(self.elements):
                out += b", " if nth else b""
                element.printed(out, room)
            out += b"]"
        else:
            out += text_of(bytes([self.type]) + bytes(self.data[: self._size()]))

    def _size(self) -> int:
        """The bytes of a closed value."""
        if self.type in SIZES:
            return SIZES[self.type]
        if self.type <= LARGE_ARRAY:
            wide = 4 if self.type in (LARGE_OBJECT, LARGE_ARRAY) else 2
            return _number(self.data, wide, wide)
        at = 1 if self.type == OPAQUE else 0
        size = 0
        for nth in range(5):
            byte = _number(self.data, at + nth, 1)
            size |= (byte & 0x7F) << 7 * nth
            if byte < 0x80:
                return at + nth + 1 + size
        raise CorruptBinlog("a JSON length is longer than 32 bits")


def patched(document: bytes, diffs: bytes) -> bytes:
    """Applies differences to a document.

    Args:
        document: the old document, in binary JSON.
        diffs: the differences, after the column's length.

    Returns:
        The new document's text, as MySQL prints it.

    Raises:
        CorruptBinlog: the bytes contradict the format, or do not fit the document.
        Unsupported: an operation or a path that is not known.
    """
    root = _value(document)
    event = Fields(diffs)
    while event.left:
        code = event.number(1)
        if code > Operation.REMOVE:
            raise Unsupported(f"a JSON document is changed by the unknown operation {code}")
        try:
            path = event.packed_text().decode()
        except UnicodeDecodeError as error:
            raise CorruptBinlog("a path of a JSON document is not UTF-8") from error
        value = None if code == Operation.REMOVE else _value(event.packed_text())
        root = _done(root, Operation(code), path, value)
    text = bytearray()
    root.printed(text, MAX_GROWTH * (len(document) + len(diffs)) + 256)
    return bytes(text)


def _value(document: bytes) -> _Value:
    """A document as a value; an empty document, which `INSERT IGNORE` makes of NULL, is JSON's null."""
    whole = memoryview(document or b"\x04\x00")
    return _Value(whole[0], whole[1:])


def _done(root: _Value, operation: Operation, path: str, value: _Value | None) -> _Value:
    """Applies one difference."""
    legs = _legs(path)
    if not legs:
        if operation is not Operation.REPLACE or value is None:
            raise CorruptBinlog(f"a JSON document is changed as a whole by {operation.name}")
        return value
    parent = root
    for leg in legs[:-1]:
        parent = _found(parent, leg, path)
    last = legs[-1]
    parent.open()
    if isinstance(last, bytes) and parent.members is not None:
        if (last in parent.members) is (operation is Operation.INSERT):
            raise _unfit(path)
        if value is None:
            del parent.members[last]
        else:
            parent.members[last] = value
    elif isinstance(last, tuple) and parent.elements is not None:
        cell = _cell(last, len(parent.elements))
        if operation is Operation.INSERT and value is not None:
            parent.elements.insert(max(cell, 0), value)
        elif not 0 <= cell < len(parent.elements):
            raise _unfit(path)
        elif value is None:
            del parent.elements[cell]
        else:
            parent.elements[cell] = value
    else:
        raise _unfit(path)
    return root


def _found(parent: _Value, leg: bytes | tuple[int, bool], path: str) -> _Value:
    parent.open()
    found = None
    if isinstance(leg, bytes):
        found = (parent.members or {}).get(leg)
    elif parent.elements is not None and 0 <= (cell := _cell(leg, len(parent.elements))) < len(parent.elements):
        found = parent.elements[cell]
    if found is None:
        raise _unfit(path)
    return found


def _cell(leg: tuple[int, bool], size: int) -> int:
    number, from_end = leg
    return size - 1 - number if from_end else number


def _legs(path: str) -> list[bytes | tuple[int, bool]]:
    """The legs of a path: a member's key, or a cell's number and whether it counts from the end."""
    found: list[bytes | tuple[int, bool]] = []
    at = 1
    while path.startswith("$") and at < len(path):
        leg = _LEG.match(path, at)
        if leg is None or (leg["last"] is None and leg["cell"] == "" and not (leg["name"] or leg["quoted"])):
            break
        if leg["quoted"]:
            found.append(str(json.loads(leg["quoted"])).encode())
        elif leg["name"]:
            found.append(leg["name"].encode())
        else:
            found.append((int(leg["cell"] or 0), leg["last"] is not None))
        at = leg.end()
    else:
        if path.startswith("$"):
            return found
    raise Unsupported("a JSON document is changed at a path that is not understood", path=path[:200])


def _unfit(path: str) -> CorruptBinlog:
    return CorruptBinlog("a difference does not fit the JSON document before it", path=path[:200])


def _key(key: bytes) -> bytes:
    """A key in quotes, printed as a string."""
    size = len(key)
    length = b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return text_of(bytes([STRING]) + length + bytes([size]) + key)


def _number(data: memoryview, at: int, size: int) -> int:
    if at + size > len(data):
        raise CorruptBinlog("a JSON document ends inside a value")
    return int.from_bytes(data[at : at + size], "little")
