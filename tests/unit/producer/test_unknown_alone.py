"""After a position of another server, transactions that the log already has are skipped by their GTIDs."""

from __future__ import annotations

from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import Kind, Outcome
from connector.log.transaction.batch import PositionAdvance, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Prepared
from connector.producer.sources.unknown_alone import Known, UnknownAlone

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def at(number: int) -> SourcePosition:
    return SourcePosition("bin.000001", 100 * number)


def begin(gtid: str | None) -> TransactionStart:
    return TransactionStart(
        server_id=1, thread_id=1, gtid=gtid, last_committed=0, sequence_number=0, start=at(1), kind=Kind.TRANSACTION,
        metadata={},
    )  # fmt: skip


def whole(number: int | None, place: int) -> TransactionBatch:
    gtid = None if number is None else f"{UUID}:{number}"
    return TransactionBatch(begin(gtid), [], TransactionEnd(at(place), 0, Outcome.COMMIT))


class Stream:
    ended = False

    def __init__(self, *items: Item) -> None:
        self._items = list(items)

    def read(self, timeout: float) -> list[Item]:
        del timeout
        found, self._items = self._items[:1], self._items[1:]
        return found

    def close(self) -> None:
        self.ended = True


def told(*items: Item, until: int = 99) -> list[Item]:
    stream = UnknownAlone(Stream(*items), Known(parse_gtids(f"{UUID}:1-5")), at(until))
    return [item for _ in items for item in stream.read(0)]


def test_a_known_transaction_is_left_out_whole() -> None:
    first, last = (
        TransactionBatch(begin(f"{UUID}:3"), [], None),
        TransactionBatch(None, [], TransactionEnd(at(3), 0, Outcome.COMMIT)),
    )
    unknown = whole(6, 4)
    assert told(whole(2, 2), first, last, unknown) == [
        PositionAdvance(at(2), f"{UUID}:2"), PositionAdvance(at(3), f"{UUID}:3"), unknown,
    ]  # fmt: skip


def test_a_transaction_without_gtid_is_passed_on() -> None:
    anonymous = whole(None, 3)
    assert told(whole(2, 2), anonymous) == [PositionAdvance(at(2), f"{UUID}:2"), anonymous]


def test_a_known_prepared_transaction_is_left_out() -> None:
    unknown = Prepared("x", whole(7, 3), one_phase=False)
    assert told(Prepared("x", whole(2, 2), one_phase=False), unknown) == [PositionAdvance(at(2), f"{UUID}:2"), unknown]


def test_transactions_after_the_known_end_are_not_looked_up() -> None:
    known = Known(parse_gtids(f"{UUID}:1-5"))
    end = PositionAdvance(at(4), None)
    stream = UnknownAlone(Stream(whole(5, 3), end), known, at(4))
    assert [*stream.read(0), *stream.read(0)] == [PositionAdvance(at(3), f"{UUID}:5"), end]
    assert known.gtids is None
    assert f"{UUID}:5" not in known
