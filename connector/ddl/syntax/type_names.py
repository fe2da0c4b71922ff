"""Names of MySQL's types and character sets, and how wide these are."""

from connector.errors import Unsupported

INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
FLOATS = ("float", "double")
TEMPORALS = ("time", "datetime", "timestamp")  # those with fractions
TEXTS = {"tinytext": 255, "text": 65535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}  # bytes
BLOBS = {"tinyblob": 255, "blob": 65535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
CHARACTERS = ("char", "varchar", *TEXTS)

# The most bytes a character has; all others of MySQL's sets have one byte each.
_WIDE = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "big5", "sjis", "cp932", "euckr", "gb2312", "gbk"), 2),
}


def width(charset: str) -> int:
    """The most bytes that a character of the set has; the widest set's for an unknown set, ""."""
    return _WIDE.get(charset, 1) if charset else 4


def charset_of(collation: str) -> str:
    """The character set a collation belongs to; "" where MariaDB leaves that to the place: uca1400_ai_ci."""
    if collation.lower().startswith("uca1400_"):
        return ""
    return charset_name(collation.split("_", 1)[0])


def charset_name(name: str) -> str:
    """A character set's name as the log has it.

    Raises:
        Unsupported: it is the one that only the source knows.
    """
    if name.lower() == "default":
        raise Unsupported("DDL not understood: a character set that is called DEFAULT")
    return "utf8mb3" if name.lower() == "utf8" else name.lower()
