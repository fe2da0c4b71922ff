"""A source's GTIDs, MySQL's or MariaDB's. Only this module decides which, by the form of the text."""

from __future__ import annotations

import re
from typing import Final, Protocol

from connector.errors import HistoriesDiffer
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.mysql import GtidSet
from connector.log.rules import NEW_LOG

_OF_MARIADB: Final = re.compile(r"\s*\d+-\d+-\d+\s*(,.*)?", re.DOTALL)


class HasGtids(Protocol):
    """A collection of GTIDs."""

    def __contains__(self, gtid: str) -> bool:
        """Return whether the collection contains a GTID."""


class Gtids(Protocol):
    """The GTIDs of a log, and of what was not captured. It grows while the log is read."""

    def add(self, gtid: str, count: int = 1) -> None:
        """Add a GTID, or `count` consecutive GTIDs that begin with it."""

    def remove(self, gtid: str) -> None:
        """Remove a GTID, if it is contained; of MariaDB's also the later ones of its domain."""

    def contains(self, gtid: str) -> bool:
        """Return whether a GTID is contained."""

    def __contains__(self, gtid: str) -> bool:
        """Return whether a GTID is contained."""

    def count(self) -> int:
        """The number of GTIDs."""

    def __bool__(self) -> bool:
        """True unless empty."""

    def __str__(self) -> str:
        """The text form, which `parse_gtids` reads."""


class Lacking(Protocol):
    """The GTIDs that one side lacks."""

    def count(self) -> int:
        """The number of GTIDs."""

    def __bool__(self) -> bool:
        """True unless empty."""

    def __str__(self) -> str:
        """The text form, for messages."""


def of_mariadb(text: str) -> bool:
    """Return whether a text of one or more GTIDs has MariaDB's form. The empty text has MySQL's."""
    return _OF_MARIADB.fullmatch(text) is not None


def parse_gtids(text: str) -> Gtids:
    """Read GTIDs in MySQL's or MariaDB's text form.

    Raises:
        Unsupported: the text has neither form.
    """
    return DomainPosition.parse(text) if of_mariadb(text) else GtidSet.parse(text)


def lacking(expected: str, found: str) -> Lacking:
    """The GTIDs of one text that another one lacks.

    Args:
        expected: the GTIDs that should be contained.
        found: the GTIDs that are there.

    Raises:
        HistoriesDiffer: one is MySQL's and the other MariaDB's, and neither is empty.
        Unsupported: one of them has neither form.
    """
    if of_mariadb(expected) and of_mariadb(found):
        return DomainPosition.parse(expected) - DomainPosition.parse(found)
    if of_mariadb(expected) == of_mariadb(found):
        return GtidSet.parse(expected) - GtidSet.parse(found)
    if not parse_gtids(expected):
        return GtidSet()
    raise HistoriesDiffer(
        "The GTIDs of the log and of the source are of two kinds: one is MySQL's, one MariaDB's",
        hint=f"go back to the server that the log was read from, or {NEW_LOG}",
        expected=expected[:200],
        found=found[:200],
    )
