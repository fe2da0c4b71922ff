"""A source's GTIDs, MySQL's or MariaDB's: the one place that tells which, by the text's form."""

from __future__ import annotations

import re
from typing import Final, Protocol

from connector.errors import HistoriesDiffer
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.mysql import GtidSet

_OF_MARIADB: Final = re.compile(r"\s*\d+-\d+-\d+\s*(,.*)?", re.DOTALL)


class HasGtids(Protocol):
    """Some GTIDs."""

    def __contains__(self, gtid: str) -> bool:
        """Return whether a GTID is in."""


class Gtids(Protocol):
    """The GTIDs that a log has, or has passed over; grows as the log is read."""

    def add(self, gtid: str, count: int = 1) -> None:
        """Add a GTID and those that follow it, `count` in all."""

    def remove(self, gtid: str) -> None:
        """Take one out, if it is in; of MariaDB's also the later ones of its domain."""

    def contains(self, gtid: str) -> bool:
        """Return whether a GTID is in."""

    def __contains__(self, gtid: str) -> bool:
        """Return whether a GTID is in."""

    def count(self) -> int:
        """The number of GTIDs."""

    def __bool__(self) -> bool:
        """True unless empty."""

    def __str__(self) -> str:
        """The text that it can be made from again."""


class Lacking(Protocol):
    """GTIDs that are missing somewhere."""

    def count(self) -> int:
        """The number of GTIDs."""

    def __bool__(self) -> bool:
        """True unless empty."""

    def __str__(self) -> str:
        """For people."""


def of_mariadb(text: str) -> bool:
    """Return whether a GTID, or a text of several, is MariaDB's. The empty text is MySQL's."""
    return _OF_MARIADB.fullmatch(text) is not None


def parse_gtids(text: str) -> Gtids:
    """Read either's text form.

    Raises:
        Unsupported: it is neither.
    """
    return DomainPosition.parse(text) if of_mariadb(text) else GtidSet.parse(text)


def lacking(wanted: str, there: str) -> Lacking:
    """The GTIDs of one text that another lacks.

    Raises:
        HistoriesDiffer: one is MySQL's and the other MariaDB's, and neither is empty.
        Unsupported: one is neither.
    """
    if of_mariadb(wanted) and of_mariadb(there):
        return DomainPosition.parse(wanted) - DomainPosition.parse(there)
    if of_mariadb(wanted) == of_mariadb(there):
        return GtidSet.parse(wanted) - GtidSet.parse(there)
    if not parse_gtids(wanted):
        return GtidSet()
    raise HistoriesDiffer(
        "The GTIDs of the log and of the source are of two kinds: one is MySQL's, one MariaDB's",
        hint="go back to the server that the log was read from, or begin a new service with a snapshot",
        wanted=wanted[:200],
        there=there[:200],
    )
