"""MariaDB's GTIDs (`domain-server-number`), and a log's position in each domain.

Within a domain the numbers only grow, whichever server writes (`gtid_strict_mode`), so a domain's last GTID implies all
before it. The text form is that of MariaDB's `gtid_binlog_pos`: `0-1-100,7-2-3`. A server's `gtid_binlog_state` has
the same form, with one GTID for each server that ever wrote in a domain. It therefore also shows which server wrote a
number below the domain's last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from connector.errors import Unsupported

_GTID: Final = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})")
_LARGEST_ID: Final = 2**32 - 1
_LARGEST: Final = 2**64 - 1


class DomainGtid(NamedTuple):
    """A GTID of MariaDB."""

    domain: int
    server: int
    number: int

    @classmethod
    def parse(cls, text: str) -> DomainGtid:
        """Read MariaDB's text form.

        Raises:
            Unsupported: the text is not a GTID of MariaDB.
        """
        found = _GTID.fullmatch(text.strip())
        gtid = cls(*map(int, found.groups())) if found else None
        if gtid is None or max(gtid.domain, gtid.server) > _LARGEST_ID or gtid.number > _LARGEST:
            raise Unsupported("Not a GTID of MariaDB", gtid=text[:200])
        return gtid

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.number}"


class MissingGtids:
    """The GTIDs of one position that another lacks.

    Args:
        spans: for each domain the last missing GTID, and the number of missing GTIDs up to it.
    """

    __slots__ = ("_spans",)

    def __init__(self, spans: list[tuple[DomainGtid, int]]) -> None:
        self._spans = spans

    def count(self) -> int:
        """The number of GTIDs, at most: a domain's numbers may have holes."""
        return sum(count for _, count in self._spans)

    def __bool__(self) -> bool:
        return bool(self._spans)

    def __str__(self) -> str:
        """First and last number of each domain: `0-1-98..100`."""
        return ",".join(
            str(last) if count == 1 else f"{last.domain}-{last.server}-{last.number - count + 1}..{last.number}"
            for last, count in self._spans
        )


class DomainPosition:
    """The position of a log in each domain. It can be changed.

    The number 0 stands for a domain without transactions, so that even an empty position has MariaDB's form.
    """

    __slots__ = ("_domains",)

    def __init__(self) -> None:
        self._domains: dict[int, dict[int, int]] = {}  # domain → server → its last number

    @classmethod
    def parse(cls, text: str) -> DomainPosition:
        """Read MariaDB's text form of a position or of `gtid_binlog_state`.

        Raises:
            Unsupported: the text is neither of them.
        """
        result = cls()
        for part in filter(None, "".join(text.split()).split(",")):
            domain, server, number = DomainGtid.parse(part)
            servers = result._domains.setdefault(domain, {})
            servers[server] = max(number, servers.get(server, 0))
        return result

    def add(self, gtid: str, count: int = 1) -> None:
        """Move to a GTID, or to the last of `count` consecutive GTIDs. A GTID before the position changes nothing.

        Raises:
            Unsupported: not a GTID of MariaDB.
        """
        domain, server, number = DomainGtid.parse(gtid)
        last = number + count - 1
        if last > _LARGEST:
            raise Unsupported("Not GTIDs of MariaDB", first=gtid, count=count)
        if domain not in self._domains or last > self._newest(domain).number:
            self._domains[domain] = {server: last}

    def remove(self, gtid: str) -> None:
        """Move back to before a GTID, if the position contains it: later GTIDs of its domain are removed, too.

        Raises:
            Unsupported: not a GTID of MariaDB.
        """
        gone = DomainGtid.parse(gtid)
        if gtid in self:
            self._domains[gone.domain] = {gone.server: max(gone.number - 1, 0)}

    def contains(self, gtid: str) -> bool:
        """Return whether a GTID is at or before this position.

        Raises:
            Unsupported: not a GTID of MariaDB.
        """
        domain, server, number = DomainGtid.parse(gtid)
        servers = self._domains.get(domain)
        if servers is None:
            return False
        if server in servers:
            return number <= servers[server]
        return number < self._newest(domain).number

    __contains__ = contains

    def issubset(self, other: DomainPosition) -> bool:
        """Return whether the other position contains the last GTID of every domain of this one."""
        return not self - other

    def copy(self) -> DomainPosition:
        """Return a copy that can be changed independently."""
        result = DomainPosition()
        result._domains = {domain: dict(servers) for domain, servers in self._domains.items()}
        return result

    def count(self) -> int:
        """The number of GTIDs up to this position, at most: a domain's numbers may have holes."""
        return sum(last.number for last in self)

    def __sub__(self, other: DomainPosition) -> MissingGtids:
        """The GTIDs up to this position that the other lacks. The last GTID of a domain counts with its server."""
        spans = []
        for last in self:
            servers = other._domains.get(last.domain, {})
            if last.number == 0 or servers.get(last.server, 0) >= last.number:
                continue
            known = servers.get(last.server)
            if known is None:
                known = max((number for number in servers.values() if number < last.number), default=0)
                if any(number >= last.number for number in servers.values()):
                    known = last.number - 1  # other servers wrote the numbers between: at least one is missing
            spans.append((last, last.number - known))
        return MissingGtids(spans)

    def __bool__(self) -> bool:
        return any(last.number for last in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DomainPosition) and self._domains == other._domains

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __iter__(self) -> Iterator[DomainGtid]:
        """The last GTID of each domain."""
        for domain in sorted(self._domains):
            yield self._newest(domain)

    def __str__(self) -> str:
        """MariaDB's form: domains in order, the servers of each by their numbers."""
        return ",".join(
            str(DomainGtid(domain, server, number))
            for domain in sorted(self._domains)
            for number, server in sorted((number, server) for server, number in self._domains[domain].items())
        )

    def __repr__(self) -> str:
        return f"DomainPosition({str(self)!r})"

    def _newest(self, domain: int) -> DomainGtid:
        number, server = max((number, server) for server, number in self._domains[domain].items())
        return DomainGtid(domain, server, number)
