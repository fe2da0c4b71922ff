"""A fork: the log continues from a source that lacks some of its last events, with `--accept-trapped`.

These events are *trapped*. They stay where they are, with their seqnos, for the log is never changed; the epoch that
goes on without them says which they are, in the control topic and on its markers. Readers from there on
skip them. A reader that has already applied one has data that the new source never had: it is refused with the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from connector.errors import HistoriesDiffer, LogDamaged, Unsupported
from connector.log.gtid.mysql import GtidSet
from connector.log.gtid.source_gtids import of_mariadb
from connector.log.ids import Epoch, Kind, Seqno
from connector.log.rules import NEW_LOG, Rule, broken
from connector.log.transaction.pending import Pending
from connector.log.transaction.position import PositionRecord

TRAPPED: Final = "trapped"
"""In a marker's metadata: the GTIDs that the new source lacks."""
TRAPPED_EVENTS: Final = "trapped_events"
"""… and the seqnos of the events under them: `6-8,10`; "" when none of the GTIDs has an event."""
SOURCE_OR_NEW_LOG: Final = f"make a server the source that has them, or {NEW_LOG}"


class Range(NamedTuple):
    """Seqnos, both ends included."""

    first: Seqno
    last: Seqno


@dataclass(frozen=True, slots=True)
class Forked:
    """The trapped events that an epoch goes on without.

    Args:
        trapped: the GTIDs, as text.
        events: the seqnos of the events under them, ascending.
    """

    trapped: str
    events: tuple[Range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """A finished event that the log holds.

    Args:
        xa_prepared: the GTID of its XA PREPARE; None: it had none.
        rows: `schema.table` → number of rows.
        statements: the number of statements.
    """

    seqno: Seqno
    epoch: Epoch
    gtid: str | None
    kind: Kind
    xa_prepared: str | None = None
    event_id: str = ""
    commit_time: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    statements: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """A fork that is allowed.

    Args:
        forked: the fork, for the epoch's record and markers.
        definition: the first trapped definition, None if none: after it the tables that the log knows may not be those
            of the new source.
    """

    forked: Forked
    definition: Seqno | None = None


def ranges_of(seqnos: Iterable[Seqno]) -> tuple[Range, ...]:
    """Seqnos as ranges, ascending."""
    found: list[Range] = []
    for seqno in sorted(seqnos):
        if found and seqno <= found[-1].last + 1:
            found[-1] = Range(found[-1].first, seqno)
        else:
            found.append(Range(seqno, seqno))
    return tuple(found)


def ranges_text(ranges: Iterable[Range]) -> str:
    """Ranges for people, and for a marker: `6-8,10`."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_ranges(text: str, at: str) -> tuple[Range, ...]:
    """Read the text form of ranges.

    Args:
        text: as `ranges_text` writes it.
        at: the marker's topic, partition and offset, for the error.

    Raises:
        LogDamaged: the text is not of that form.
    """
    try:
        parts = [part.partition("-") for part in text.split(",") if part]
        return tuple(Range(Seqno(int(first)), Seqno(int(last or first))) for first, _, last in parts)
    except ValueError as error:
        raise LogDamaged(
            "A marker's trapped events are not ranges of seqnos", rule=Rule.UNDECODABLE, at=at, text=text[:200]
        ) from error


def overlaps(ranges: Iterable[Range], first: Seqno, last: Seqno) -> bool:
    """Return whether any seqno from `first` to `last` is in one of the ranges."""
    return any(low <= last and first <= high for low, high in ranges)


def outside(ranges: Iterable[Range], first: Seqno, last: Seqno) -> int:
    """The number of seqnos from `first` to `last` that are in none of the ranges."""
    count, at = 0, int(first)
    for low, high in sorted(ranges):
        if low > last:
            break
        count += max(low - at, 0)
        at = max(at, high + 1)
    return count + max(last - at + 1, 0)


def accept(
    position: PositionRecord, trapped: str, events: Sequence[LoggedEvent], pending: Iterable[Pending] = ()
) -> Accepted:
    """Decide whether the log may go on without the trapped transactions.

    Args:
        position: the log's.
        trapped: the GTIDs that the log counts as seen and its new source lacks.
        events: the log's finished events under them that are not void by an earlier fork.
        pending: the XA transactions that are prepared.

    Raises:
        HistoriesDiffer: it may not: what is prepared, or an unfinished load, is no longer what the new source has.
        Unsupported: the GTIDs are MariaDB's, of which a position cannot be taken back.
    """
    if of_mariadb(trapped) or (position.gtid_set is not None and of_mariadb(position.gtid_set)):
        raise Unsupported(
            "a log of a MariaDB cannot go on without trapped transactions: its position has only the last of a domain",
            hint=SOURCE_OR_NEW_LOG,
            trapped=trapped,
        )
    if position.snapshot:
        raise broken(
            HistoriesDiffer,
            Rule.FORK_WITHIN_LOAD,
            hint=NEW_LOG,
            trapped=trapped,
        )
    gone = GtidSet.parse(trapped)
    if not GtidSet.parse(position.gtid_set or "") - gone:
        raise broken(
            HistoriesDiffer,
            Rule.FORK_OF_ANOTHER_SERVER,
            hint="is source.host right?",
            trapped=trapped,
        )
    for prepared in pending:
        if prepared.gtid is not None and prepared.gtid in gone:
            raise broken(
                HistoriesDiffer,
                Rule.FORK_WITHOUT_PREPARE,
                hint=SOURCE_OR_NEW_LOG,
                xid=prepared.xid,
                gtid=prepared.gtid,
            )
    for event in events:
        if event.xa_prepared is not None and event.xa_prepared not in gone:
            raise broken(
                HistoriesDiffer,
                Rule.FORK_WITHOUT_COMMIT,
                hint=SOURCE_OR_NEW_LOG,
                seqno=event.seqno,
                gtid=event.gtid,
                prepared=event.xa_prepared,
            )
    forked = Forked(str(gone), ranges_of(event.seqno for event in events))
    return Accepted(forked, next((event.seqno for event in events if event.kind is Kind.DDL), None))


def without(gtid_set: str | None, forked: Forked) -> str | None:
    """The GTID set of the log for its new source: a trapped GTID that comes again is another transaction."""
    return None if gtid_set is None else str(GtidSet.parse(gtid_set) - GtidSet.parse(forked.trapped))
