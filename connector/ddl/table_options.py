"""Table options of CREATE TABLE and ALTER TABLE: only the character set means anything to a target."""

from __future__ import annotations

from connector.ddl.column_spec import charset_name, charset_of
from connector.ddl.reader import Reader
from connector.ddl.tokens import Lexeme

_PLAIN = (
    *("ENGINE", "TYPE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "PAGE_CHECKSUM", "COMMENT"),
    *("COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"),
    *("SECONDARY_ENGINE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD"),
    *("ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "AUTOEXTEND_SIZE", "TABLESPACE"),
    *("STORAGE", "TRANSACTIONAL"),
    *("PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "ENCRYPTION_KEY_ID"),  # MariaDB's
)
# Engines that keep no rows, or someone else's.
_FOREIGN_ENGINES = ("BLACKHOLE", "MERGE", "MRG_MYISAM", "FEDERATED")


def table_option(reader: Reader) -> str | None:
    """Pass one table option.

    Returns:
        None if no option comes next; the character set it names; or "" for any other option.
    """
    default = reader.accept("DEFAULT")
    if reader.accept("CHARACTER", "SET") or reader.accept("CHARSET"):
        return charset_name(_value(reader))
    if reader.accept("COLLATE"):
        return charset_of(_value(reader))
    if not default and (option := reader.accept_any(*_PLAIN)):
        value = _value(reader)
        if option in ("ENGINE", "TYPE") and value.upper() in _FOREIGN_ENGINES:
            reader.stop(f"engine {value}")
        return ""
    if not default and reader.accept_any("DATA", "INDEX"):
        reader.expect("DIRECTORY")
        _value(reader)
        return ""
    if not default and reader.accept("UNION"):
        reader.accept("=")
        reader.skip_parentheses()
        return ""
    if default:
        reader.stop("a table option that is not known")
    return None


def partitioning(reader: Reader) -> bool:
    """Pass PARTITION BY … if it comes next: where rows lie is no matter."""
    if not reader.accept("PARTITION", "BY"):
        return False
    reader.accept("LINEAR")
    if reader.accept_any("HASH", "KEY", "RANGE", "LIST") == "":
        reader.stop("a partitioning that is not known")
    if reader.accept("ALGORITHM"):
        reader.expect("=")
        reader.take()
    reader.accept("COLUMNS")
    reader.skip_parentheses()
    while reader.accept_any("PARTITIONS", "SUBPARTITIONS"):
        reader.take()
    if reader.accept("SUBPARTITION", "BY"):
        reader.accept("LINEAR")
        reader.accept_any("HASH", "KEY")
        reader.skip_parentheses()
        if reader.accept("SUBPARTITIONS"):
            reader.take()
    if reader.peek("("):
        reader.skip_parentheses()
    return True


def _value(reader: Reader) -> str:
    reader.accept("=")
    if reader.token.kind in (Lexeme.SIGN, Lexeme.END):
        reader.stop("expected a value")
    return reader.take().text
