"""Formats the session values of a statement: as Tungsten's OPTIONS, and as the SET statements that go before it.

The log holds them all as options of the statement (`connector.log.transaction.statement_options`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connector.log.transaction import statement_options as replay

# Java's names of MySQL's character sets, as Tungsten's `##charset` has them; others are shown by MySQL's name.
_JAVA: Final = {
    "ascii": "US-ASCII",
    "big5": "Big5",
    "cp1250": "Cp1250",
    "cp1251": "Cp1251",
    "cp1256": "Cp1256",
    "cp1257": "Cp1257",
    "cp850": "Cp850",
    "cp852": "Cp852",
    "cp866": "Cp866",
    "cp932": "MS932",
    "eucjpms": "EUC_JP_Solaris",
    "euckr": "EUC_KR",
    "gb18030": "GB18030",
    "gb2312": "EUC_CN",
    "gbk": "GBK",
    "greek": "ISO8859_7",
    "hebrew": "ISO8859_8",
    "koi8r": "KOI8_R",
    "koi8u": "KOI8_U",
    "latin1": "ISO8859_1",
    "latin2": "ISO8859_2",
    "latin5": "ISO8859_9",
    "latin7": "ISO8859_13",
    "sjis": "SJIS",
    "tis620": "TIS620",
    "ujis": "EUC_JP",
    "utf8mb3": "UTF-8",
    "utf8mb4": "UTF-8",
}


def tungsten_options(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The names and values of an OPTIONS line: `##charset` first, character sets by their numbers."""
    found = {name: value for name, value in options.items() if not _is_set_before(name)}
    number = found.pop(replay.CHARSET_ID, None)
    charset = found.get(replay.CHARSET)
    if charset is None:
        return list(found.items())
    if number is not None:  # logs of earlier versions have the name alone
        found[replay.CHARSET] = number
    return [("##charset", _JAVA.get(charset, charset)), *found.items()]


def set_before(options: Mapping[str, str]) -> Iterator[str]:
    """The SET statements that a statement needs before it: of its generated key, random numbers and user variables."""
    for name, value in options.items():
        if name.startswith(replay.VARIABLE):
            yield f"SET @`{name[1:].replace('`', '``')}` := {value}"
        elif name == replay.RAND_SEED1:
            yield f"SET RAND_SEED1 = {value}, RAND_SEED2 = {options[replay.RAND_SEED2]}"
        elif name in replay.OF_NEXT and name != replay.RAND_SEED2:
            yield f"SET {name.upper()} = {value}"


def with_service(sql: str, service: str | None) -> str:
    """A statement with the comment by which Tungsten's services recognise their own."""
    if not service:
        return sql
    return f"{sql} /* ___SERVICE___ = [{service.replace('*/', '* /')}] */"


def _is_set_before(name: str) -> bool:
    return name in replay.OF_NEXT or name.startswith(replay.VARIABLE)
