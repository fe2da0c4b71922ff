"""Applies differences to JSON documents (binlog_row_value_options=PARTIAL_JSON).

The differences are those of MySQL's `sql-common/json_diff.cc`: one after the other an operation, a path and, unless
something is removed, a value in binary JSON. They are applied to the document's text as MySQL prints it, of which only
the paths are opened, so that numbers, times and decimals stay unchanged.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields
from connector.mysql.values.json_parts import parts
from connector.mysql.values.jsontext import text_of

STRING: Final = 12  # the type of a string in binary JSON

_LEG = re.compile(
    r'\.(?P<quoted>"(?:[^"\\]|\\.)*")|\.(?P<name>[^.\[\]"*\s]+)|\[(?P<cell>\d+)\]|\[(?P<last>last)(-(?P<back>\d+))?\]'
)


class Operation(IntEnum):
    """The operation of a difference."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


class _Value:
    """A value: closed (its text), or opened (its members by their keys in quotes, or its elements)."""

    __slots__ = ("elements", "inserted", "members", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.members: dict[bytes, _Value] | None = None
        self.elements: list[_Value] | None = None
        self.inserted = False  # true: `members` are no longer in MySQL's order

    def open(self) -> None:
        """Opens a container; does nothing for other values."""
        if self.text[:1] not in (b"{", b"[") or self.members is not None or self.elements is not None:
            return
        try:
            found = parts(self.text)
        except ValueError as error:
            raise CorruptBinlog("a JSON document is not as MySQL prints it", why=str(error)) from error
        if self.text[:1] == b"[":
            self.elements = [_Value(one) for one in found]
        else:
            self.members = {key: _Value(one) for key, one in zip(found[::2], found[1::2], strict=True)}

    def printed(self) -> bytes:
        """Its text."""
        if self.members is not None:
            members = list(self.members.items())
            if self.inserted:  # once, not at each insertion
                members.sort(key=lambda member: _order(member[0]))
            return b"{" + b", ".join(key + b": " + one.printed() for key, one in members) + b"}"
        if self.elements is not None:
            return b"[" + b", ".join(one.printed() for one in self.elements) + b"]"
        return self.text


def patched(document: bytes, diffs: bytes) -> bytes:
    """Applies differences to a document.

    Args:
        document: the old document's text, as MySQL prints it.
        diffs: the differences, after the column's length.

    Returns:
        The new document's text, as MySQL prints it.

    Raises:
        CorruptBinlog: the bytes contradict the format, or do not fit the document.
        Unsupported: an operation or a path that is not known.
    """
    root = _Value(document)
    event = Fields(diffs)
    while event.left:
        code = event.number(1)
        if code > Operation.REMOVE:
            raise Unsupported(f"a JSON document is changed by the unknown operation {code}")
        try:
            path = event.packed_text().decode()
        except UnicodeDecodeError as error:
            raise CorruptBinlog("a path of a JSON document is not UTF-8") from error
        value = None if code == Operation.REMOVE else _Value(text_of(event.packed_text()))
        root = _done(root, Operation(code), path, value)
    return root.printed()


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
            parent.inserted |= operation is Operation.INSERT
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
    """The legs of a path: a member's key in quotes, or a cell's number and whether it counts from the end."""
    if not path.startswith("$"):
        raise _not_understood(path)
    found: list[bytes | tuple[int, bool]] = []
    at = 1
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise _not_understood(path)
        found.append(_leg(match))
        at = match.end()
    return found


def _leg(match: re.Match[str]) -> bytes | tuple[int, bool]:
    if match["cell"]:
        return int(match["cell"]), False
    if match["last"]:
        return int(match["back"] or 0), True
    try:
        return _key(str(json.loads(match["quoted"]) if match["quoted"] else match["name"]).encode())
    except ValueError as error:
        raise _not_understood(match.string) from error


def _not_understood(path: str) -> Unsupported:
    return Unsupported("a JSON document is changed at a path that is not understood", path=path[:200])


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


def _order(key: bytes) -> tuple[int, bytes]:
    """The place of a key that is printed in quotes, among MySQL's: shorter keys first, then by their bytes."""
    plain = str(json.loads(key)).encode() if b"\\" in key else key[1:-1]
    return len(plain), plain
