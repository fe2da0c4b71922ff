"""Compiles a rule of the configuration for one table, once for each layout.

A rule that does not fit a table stops reading: nothing that it should hide is published.
"""

from __future__ import annotations

import hmac
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from connector.config.filters import MIN_HASH_KEY, Filters, Mask, TableRule, finds_column
from connector.ddl.column_mentions import twice
from connector.ddl.nullable_columns import DATES
from connector.errors import ConfigError, Unsupported
from connector.log.format import avro
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.values.columns import INTEGERS
from connector.mysql.values.row_transform import Does, RowTransform
from connector.redaction import remember

NUMBERS: Final = frozenset(name for name, _ in INTEGERS.values()) | {"year"}
TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
Part = tuple[Does, int, bytes]
KEPT: Final[Part] = (Does.KEEP, 0, b"")


def published_name(rule: TableRule | None, name: TableName) -> TableName:
    """The name under which a table is published."""
    schema, dot, table = rule.publish_as.partition(".") if rule is not None else ("", "", "")
    return TableName(schema or name.schema, table if dot else name.table)


def row_transform(layout: TableLayout, rule: TableRule, key: bytes) -> RowTransform | None:
    """Compiles a rule for a table.

    Args:
        layout: the source's table.
        rule: the rule of `source.filters.tables` that matches the table.
        key: the hash key.

    Returns:
        None if the rule changes neither columns nor names.

    Raises:
        Unsupported: the rule hides a part of the key, a column has the wrong type, or two columns would be published
            under one name.
    """
    parts = [_part(layout, index, rule) for index in range(len(layout.columns))]
    name = published_name(rule, layout.name)
    names = [called(rule, column.name) for column in layout.columns]
    kept = all(part == KEPT for part in parts) and names == [column.name for column in layout.columns]
    if kept and name == layout.name:
        return None
    kept_at = [index for index, (does, _, _) in enumerate(parts) if does is not Does.DROP]
    if not kept_at:
        raise Unsupported("a rule drops every column of a table", hint="use source.filters.ignore", table=layout.name)
    columns = tuple(replace(_published(layout.columns[at], parts[at]), name=names[at]) for at in kept_at)
    if again := twice(column.name for column in columns):
        at = next(at for at in kept_at if names[at].lower() == again.lower() != layout.columns[at].name.lower())
        _stop(layout.name, layout.columns[at], f"publishes two columns under the name {again}")
    return RowTransform(TableLayout(name, columns, tuple(map(kept_at.index, layout.key))), parts, key)


def called(rule: TableRule | None, column: str) -> str:
    """The name under which a column is published."""
    names = rule.rename if rule is not None else {}
    return next((new for old, new in names.items() if old.lower() == column.lower()), column)


def repeats_values(rule: TableRule, column: str | None = None) -> bool:
    """True if published values of a column, or of any, may repeat though the source's do not.

    Rows that the rule leaves out keep their old values with the reader, so any column's may then. Equal hashes are of
    equal texts.
    """
    if not {"insert", "update", "delete"}.issubset(rule.actions):
        return True
    masks = [
        (pattern, mask) for pattern, mask in rule.mask.items() if column is None or finds_column((pattern,), column)
    ]
    if column is not None:
        masks = masks[:1]
    return any(mask.hash is None for _, mask in masks)


@dataclass(frozen=True, slots=True)
class RuledColumns:
    """A rule's effect on columns, for definitions."""

    rule: TableRule

    def drops(self, column: str) -> bool:
        """True if the column is dropped."""
        return finds_column(self.rule.drop, column)

    def treats(self, column: str) -> object:
        """The treatment of a column, comparable between rules."""
        return "dropped" if self.drops(column) else (self.mask(column), finds_column(self.rule.zero_dates, column))

    def mask(self, column: str) -> Mask | None:
        """The mask of a column that is not dropped."""
        return next((mask for pattern, mask in self.rule.mask.items() if finds_column((pattern,), column)), None)

    def nulls(self, column: str, base: str) -> bool:
        """True if rows of the column may be published with a NULL that the source's rows do not have."""
        if self.drops(column):
            return False
        for pattern, mask in self.rule.mask.items():
            if finds_column((pattern,), column):
                return mask.gives_null
        return base in DATES and finds_column(self.rule.zero_dates, column)

    @property
    def names(self) -> Mapping[str, str]:
        """The published names of renamed columns, by their lower-case names."""
        return {old.lower(): new for old, new in self.rule.rename.items()}


def idle(rule: TableRule, layouts: Iterable[TableLayout]) -> list[str]:
    """The column patterns of a rule that match no column of these tables: most likely misspelt."""
    patterns = (*rule.drop, *rule.mask, *rule.zero_dates, *rule.rename)
    columns = {column.name for layout in layouts for column in layout.columns}
    return [pattern for pattern in patterns if not any(finds_column((pattern,), column) for column in columns)]


def hash_key(filters: Filters) -> bytes:
    """The key of hashing masks; b"" if there is none.

    Raises:
        ConfigError: its file cannot be read, or is too short.
    """
    if filters.hash_key_file is None:
        return filters.hash_key.get_secret_value().encode()
    try:
        key = filters.hash_key_file.read_bytes().strip()
    except OSError as error:
        raise ConfigError(
            f"source.filters.hash_key_file cannot be read: {error.strerror}", file=filters.hash_key_file
        ) from error
    if len(key) < MIN_HASH_KEY:
        raise ConfigError(
            f"source.filters.hash_key_file holds less than {MIN_HASH_KEY} bytes", file=filters.hash_key_file
        )
    remember([key.decode(errors="backslashreplace")])
    return key


def hash_key_digest(filters: Filters) -> str:
    """A digest of the hash key, for the epoch's record, which distinguishes keys without revealing them."""
    return hmac.digest(hash_key(filters), b"thl", "sha256").hex()


def _part(layout: TableLayout, index: int, rule: TableRule) -> Part:
    column, key = layout.columns[index], index in layout.key
    if finds_column(rule.drop, column.name):
        if key:
            _stop(layout.name, column, "drops a column of the key, without which rows cannot be distinguished")
        return Does.DROP, 0, b""
    for pattern, mask in rule.mask.items():
        if finds_column((pattern,), column.name):
            return _mask(layout.name, column, mask, key=key)
    if not key and column.base in DATES and finds_column(rule.zero_dates, column.name):
        return Does.ZERO_TO_NULL, 0, b""
    return KEPT


def _mask(table: TableName, column: Column, mask: Mask, *, key: bool) -> Part:
    if key and mask.hash is None:
        _stop(
            table, column, "masks a column of the key with a value other than a hash, so rows cannot be distinguished"
        )
    if mask.hash is None and mask.truncate is None:
        return Does.FIX, 0, _fixed(table, column, mask.fixed)
    if column.base not in TEXTS:
        _stop(table, column, f"hashes or truncates a column that is {column.type}, no text")
    if mask.hash is None:
        return Does.CUT, mask.truncate or 0, b""
    if mask.hash > _room(column):
        _stop(table, column, f"puts a hash of {mask.hash} digits into a column that is {column.type}")
    return Does.HASH, mask.hash, b""


def _fixed(table: TableName, column: Column, value: str | int | float | None) -> bytes:
    base = column.base
    match value:
        case None:
            return avro.union(None)
        case str() if base in TEXTS and len(value) <= _room(column):
            return avro.union(value)
        case int() if base in NUMBERS and -(1 << 63) <= value < 1 << 63:
            return avro.union(value)
        case int() | float() if base in ("float", "double"):
            return avro.union(struct.unpack("f", struct.pack("f", value))[0] if base == "float" else float(value))
    return _stop(table, column, f"puts {value!r} into a column that is {column.type}")


def _published(column: Column, part: Part) -> Column:
    nullable = column.nullable or part[0] is Does.ZERO_TO_NULL or (part[0] is Does.FIX and part[2] == avro.union(None))
    return replace(column, nullable=nullable)


def _room(column: Column) -> int:
    """The number of characters that always fit."""
    size = re.fullmatch(r"(?:var)?char\((\d+)\)", column.type)
    return int(size[1]) if size else 255 // 4 if column.type == "tinytext" else 65535 // 4


def _stop(table: TableName, column: Column, what: str) -> NoReturn:
    raise Unsupported(
        f"a rule of source.filters.tables {what}",
        hint="change the rule, or leave the table out with source.filters.ignore",
        table=table,
        column=column.name,
    )
