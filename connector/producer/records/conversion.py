"""The content of a version as of a later definition: what an ALTER TABLE does to the rows that are there.

Versions are not rewritten; each is converted when it is read. A value that only the source knows makes the row unknown.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connector.log.format import avro
from connector.log.format.varint import read_long
from connector.targets.operations import ExistingColumn, KnownValue, UnknownValue, Value

NULL, LONG, DOUBLE, STRING, BYTES = range(0, 10, 2)  # Avro's tags of a value


@dataclass(frozen=True, slots=True)
class DefinitionStep:
    """A definition, and how the rows of the one before become its rows.

    Args:
        before: the number of the definition before; 0: there is none.
        columns: for each column the index of the column before and the text to append; or its value in Avro; or None:
            only the source knows it.
        column_count: of the definition before.
        filled: the columns before that become NOT NULL: only the source knows what a NULL in them has become.
    """

    before: int
    columns: tuple[tuple[int, str] | bytes | None, ...]
    column_count: int
    filled: tuple[int, ...] = ()

    @property
    def keeps_values(self) -> bool:
        """True if each row has the values that it had."""
        return not self.filled and self.columns == tuple((at, "") for at in range(self.column_count))

    def to_json(self) -> bytes:
        """The step as it is stored."""
        columns = [one.hex() if isinstance(one, bytes) else one for one in self.columns]
        stored = {"before": self.before, "columns": columns, "numbers": self.column_count, "filled": self.filled}
        return json.dumps(stored).encode()

    @classmethod
    def from_json(cls, text: bytes) -> DefinitionStep:
        """The step that `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError, IndexError: it is none.
        """
        stored: dict[str, Any] = json.loads(text)
        columns = tuple(
            bytes.fromhex(one) if isinstance(one, str) else None if one is None else (int(one[0]), str(one[1]))
            for one in stored["columns"]
        )
        filled = tuple(map(int, stored.get("filled", ())))  # earlier versions took each NULL for kept
        step = cls(int(stored["before"]), columns, int(stored["numbers"]), filled)
        indexes = [*filled, *(one[0] for one in columns if isinstance(one, tuple))]
        if not all(0 <= at < step.column_count for at in indexes):
            raise ValueError("a column of the definition before that it did not have")
        return step


def step_of(
    before: int, names: Sequence[str], origins: Sequence[ExistingColumn | KnownValue | UnknownValue]
) -> DefinitionStep:
    """The step of an ALTER TABLE.

    Args:
        before: the number of the definition before.
        names: its columns.
        origins: for each column after it, the origin of its values.
    """
    index = {name.casefold(): at for at, name in enumerate(names)}
    columns: list[tuple[int, str] | bytes | None] = []
    for origin in origins:
        match origin:
            case KnownValue(value):
                columns.append(avro.union(value))
            case ExistingColumn(name, pad, _, unfit) if not unfit:
                columns.append((index[name.casefold()], pad))
            case _:
                columns.append(None)
    filled = (index[one.name.casefold()] for one in origins if isinstance(one, ExistingColumn) and one.filled)
    return DefinitionStep(before, tuple(columns), len(names), tuple(filled))


def converted(content: bytes, step: DefinitionStep) -> bytes | None:
    """The values of a row after a step; None: one of them is not known.

    Args:
        content: its values before, in Avro.
        step: the step.
    """
    values = split(content, step.column_count)
    if any(values[at][0] == NULL for at in step.filled):
        return None
    made: list[bytes] = []
    for column in step.columns:
        if column is None:
            return None
        if isinstance(column, bytes):
            made.append(column)
            continue
        at, pad = column
        made.append(_padded(values[at], pad) if pad else values[at])
    return b"".join(made)


def split(content: bytes, columns: int) -> list[bytes]:
    """The values of a row, each in Avro.

    Raises:
        ValueError: it has another number of values, or something else than values.
    """
    found: list[bytes] = []
    at = 0
    while at < len(content):
        start, tag = at, content[at]
        at += 1
        if tag == LONG:
            _, at = read_long(content, at)
        elif tag == DOUBLE:
            at += 8
        elif tag in (STRING, BYTES):
            size, at = read_long(content, at)
            if size < 0:
                raise ValueError("a value has a negative length")
            at += size
        elif tag != NULL:
            raise ValueError("a value has an unknown tag")
        found.append(content[start:at])
    if len(found) != columns or at != len(content):
        raise ValueError("a version has another number of values than its definition columns")
    return found


def value_of(encoded: bytes) -> Value:
    """A value that is encoded in Avro."""
    tag = encoded[0]
    if tag == NULL:
        return None
    if tag == LONG:
        return read_long(encoded, 1)[0]
    if tag == DOUBLE:
        number: float = struct.unpack("<d", encoded[1:9])[0]
        return number
    _, at = read_long(encoded, 1)
    return encoded[at:].decode() if tag == STRING else encoded[at:]


def _padded(encoded: bytes, pad: str) -> bytes:
    value = value_of(encoded)
    if isinstance(value, bytes):
        return avro.union(value + pad.encode("latin-1"))
    return encoded if value is None else avro.union(f"{value}{pad}")
