"""Names of MySQL's types and character sets, and the widths of character sets."""

from connector.errors import Unsupported

INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
FLOATS = ("float", "double")
TEMPORALS = ("time", "datetime", "timestamp")  # types with fractional seconds
TEXTS = {"tinytext": 255, "text": 65535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}  # bytes
BLOBS = {"tinyblob": 255, "blob": 65535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
CHARACTERS = ("char", "varchar", *TEXTS)

# Maximum bytes per character; all other character sets of MySQL have one byte.
_WIDE = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "big5", "sjis", "cp932", "euckr", "gb2312", "gbk"), 2),
}


def width(charset: str) -> int:
    """Return the maximum bytes per character of a character set; for an unknown one ("") those of the widest."""
    return _WIDE.get(charset, 1) if charset else 4


def charset_of(collation: str) -> str:
    """Return the character set of a collation; "" if the context determines it, as for MariaDB's uca1400_ai_ci."""
    if collation.lower().startswith("uca1400_"):
        return ""
    return charset_name(collation.split("_", 1)[0])


def charset_name(name: str) -> str:
    """Return the log's name of a character set.

    Raises:
        Unsupported: it is DEFAULT, which only the source can resolve.
    """
    if name.lower() == "default":
        raise Unsupported("DDL not understood: the character set DEFAULT")
    return "utf8mb3" if name.lower() == "utf8" else name.lower()
