"""MariaDB's collations beyond MySQL's: which character set an id stands for.

Read from a MariaDB 11.4 server, `information_schema.COLLATION_CHARACTER_SET_APPLICABILITY`; a test compares all of
them. Below 576 its ids are MySQL's.
"""

from __future__ import annotations

from typing import Final

NO_PAD: Final = 1024  # a collation's id, and this: the same, but trailing spaces count
UCA1400: Final = 2048  # from here on 256 ids a character set
UCA1400_SETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
EACH: Final = 256
# The first id of those that MariaDB 10 added, in runs of 32.
ADDED: Final = {576: "utf8mb3", 608: "utf8mb4", 640: "ucs2", 672: "utf16", 736: "utf32"}
RUN: Final = 32


def padded_twin(collation: int) -> int:
    """The collation that this one is the NO PAD variant of; itself, if it is none."""
    return collation - NO_PAD if NO_PAD < collation < UCA1400 else collation


def charset_of(collation: int) -> str | None:
    """The character set of a collation that MySQL has not; None when it is not known here either."""
    group = (collation - UCA1400) // EACH
    if 0 <= group < len(UCA1400_SETS):
        return UCA1400_SETS[group]
    return ADDED.get(collation // RUN * RUN)
