"""Parses table options and partitioning; only the character set matters to a target."""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax.ast_column import (
    IndexPart,
    IndexParts,
    NotUnderstood,
)
from connector.ddl.syntax.ast_table import (
    OtherOption,
    Partitioning,
    TableCharset,
)
from connector.ddl.syntax.parse_parts import comment_text, index_parts, parenthesized
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import charset_name, charset_of

_PLAIN_OPTIONS: Final = (
    *("ENGINE", "TYPE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "PAGE_CHECKSUM"),
    *("COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"),
    *("SECONDARY_ENGINE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD"),
    *("ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "AUTOEXTEND_SIZE", "TABLESPACE"),
    *("STORAGE", "TRANSACTIONAL"),
    *("PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "ENCRYPTION_KEY_ID"),  # MariaDB's
)
# Engines that store no rows, or rows of other tables.
_FOREIGN_ENGINES: Final = ("BLACKHOLE", "MERGE", "MRG_MYISAM", "FEDERATED")


def table_option(reader: TokenReader) -> TableCharset | OtherOption | None:
    """Parse one table option, if one comes next.

    Raises:
        Unsupported: the option is not understood.
    """
    start = reader.start
    default = reader.accept("DEFAULT")
    if reader.accept("CHARACTER", "SET") or reader.accept("CHARSET"):
        charset = charset_name(_value(reader))
        return TableCharset(reader.since(start), charset)
    if reader.accept("COLLATE"):
        charset = charset_of(_value(reader))
        return TableCharset(reader.since(start), charset)
    if default:
        reader.stop("unknown table option")
    if reader.accept("COMMENT"):
        comment = comment_text(reader)
        return OtherOption(reader.since(start), comment=comment)
    if option := reader.accept_any(*_PLAIN_OPTIONS):
        value = _value(reader)
        if option in ("ENGINE", "TYPE") and value.upper() in _FOREIGN_ENGINES:
            return OtherOption(reader.since(start), f"engine {value}")
    elif reader.accept_any("DATA", "INDEX"):
        reader.expect("DIRECTORY")
        _value(reader)
    elif reader.accept("UNION"):
        reader.accept("=")
        reader.skip_parentheses()
    else:
        return None
    return OtherOption(reader.since(start))


def partitioning(reader: TokenReader) -> Partitioning | None:
    """Parse PARTITION BY … if it comes next, for the names of its columns."""
    start = reader.start
    if not reader.accept("PARTITION", "BY"):
        return None
    reader.accept("LINEAR")
    kind = reader.accept_any("HASH", "KEY", "RANGE", "LIST")
    if not kind:
        reader.stop("unknown partitioning")
    if reader.accept("ALGORITHM"):
        reader.expect("=")
        reader.take()
    columns = reader.accept("COLUMNS")
    over = [_partition_parts(reader, names=columns or kind == "KEY")]
    while reader.accept_any("PARTITIONS", "SUBPARTITIONS"):
        reader.take()
    if reader.accept("SUBPARTITION", "BY"):
        reader.accept("LINEAR")
        kind = reader.accept_any("HASH", "KEY")
        over.append(_partition_parts(reader, names=kind == "KEY"))
        if reader.accept("SUBPARTITIONS"):
            reader.take()
    if reader.peek("("):
        reader.skip_parentheses()
    parts: list[IndexPart] = []
    for one in over:
        if isinstance(one, NotUnderstood):
            return Partitioning(reader.since(start), one)
        parts += one
    return Partitioning(reader.since(start), tuple(parts))


def _partition_parts(reader: TokenReader, *, names: bool) -> IndexParts:
    if names and reader.peek("("):
        return index_parts(reader)
    return (parenthesized(reader),)


def _value(reader: TokenReader) -> str:
    reader.accept("=")
    if reader.token.kind in (Lexeme.SIGN, Lexeme.END):
        reader.stop("expected a value")
    return reader.take().text
