"""The text of the statement whose rows follow: ROWS_QUERY, and MariaDB's ANNOTATE_ROWS.

MySQL's (`libs/mysql/binlog/event/rows_event.h`, `Rows_query_event`) begins with a byte that once was the length; the
rest is the text. MariaDB's (`sql/log_event.h`, `Annotate_rows_log_event`) is the text alone. Both are as the session
sent it. MySQL's BEGIN tells in which character set that is; MariaDB writes none, so there it is taken for UTF-8.
"""

from __future__ import annotations

from functools import lru_cache

from connector.errors import ConnectorError
from connector.mysql.binlog.events.query import State
from connector.mysql.fields import Fields
from connector.mysql.values.charsets import decode, width

QUERY_FIXED = 13


def rows_query(text: bytes, size: int, begin: bytes, limit: int) -> str:
    """The text, for people: bytes that mean nothing in its character set are shown as such (`\\xe9`).

    Args:
        text: its beginning, at least `limit` bytes of it where it has so many.
        size: bytes of the whole.
        begin: the body of the QUERY event that its transaction began with; empty where there is none.
        limit: how many bytes of it are kept. What is longer is cut, and says so.
    """
    charset = _charset(begin[QUERY_FIXED : QUERY_FIXED + int.from_bytes(begin[11:13], "little")])
    if size <= limit:
        return _shown(text[:size], charset, 1)
    return f"{_shown(text[:limit], charset, width(charset))} … ({limit} of {size} bytes)"


def _shown(text: bytes, charset: str, widest: int) -> str:
    """Decoded; up to `widest - 1` bytes at its end may be the beginning of a character, which is left out."""
    for cut in range(widest):
        try:
            return decode(text[: len(text) - cut], charset)
        except ConnectorError:
            continue
    return text.decode("utf-8", "backslashreplace")


@lru_cache(maxsize=256)
def _charset(variables: bytes) -> str:
    """What status variables say of the text's character set."""
    state = State("utf8mb4")
    state.read(Fields(variables))
    return state.charset
