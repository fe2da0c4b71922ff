"""Impossible commit times are damage."""

from __future__ import annotations

import io

import pytest

from connector.errors import CorruptBinlog
from connector.inspect.formats.json_transaction import JsonPrinter
from connector.inspect.formats.tungsten_transaction import TungstenPrinter
from connector.inspect.selection import Selection, SelectionBounds
from connector.inspect.transactions import LATEST, Formatter, TransactionPrinter
from connector.log.ids import Outcome
from connector.log.transaction.batch import TransactionBatch, TransactionEnd
from tests.support.batches import BEGIN, END, inserts


def printed(printer: Formatter, *commit_times: int) -> bytes:
    out = io.BytesIO()
    transactions = TransactionPrinter(printer, Selection(SelectionBounds()), out)
    for time in commit_times:
        transactions.accept(TransactionBatch(BEGIN, [inserts(1)], TransactionEnd(END, time, Outcome.COMMIT)))
    return out.getvalue()


@pytest.mark.parametrize("printer", [JsonPrinter, TungstenPrinter])
def test_an_impossible_commit_time_is_damage(printer: type[Formatter]) -> None:
    """A tagged GTID holds 64 bits of it, and a checksum is right for any."""
    told = printed(printer(), 0, LATEST - 1)
    assert b"1970-01-01" in told
    assert b"9999-12-31" in told
    for time in (-1, LATEST):
        with pytest.raises(CorruptBinlog) as refused:
            printed(printer(), time)
        assert refused.value.where == {"file": END.file, "before": END.offset}
