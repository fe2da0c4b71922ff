"""Stored batches of a prepared transaction are read back unchanged and give the same fragments."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.encode.stored import BatchDecoder, Changes, messages
from tests.support import encoding as making


def through(pieces: list[TransactionBatch], size: int) -> list[Changes]:
    """Kept and read back, all pieces by one reader."""
    decoder, found = BatchDecoder(), []
    for piece in pieces:
        *before, last = messages(piece.changes, size)
        assert all(decoder.feed(message) is None for message in before)
        assert all(len(message) <= size for message in (*before, last))
        changes = decoder.feed(last)
        assert changes is not None
        found.append(changes)
    return found


def fragments(pieces: list[TransactionBatch], limit: int) -> list[bytes]:
    encoder = Encoder(
        service="s", source_id="db:3306", partitions=3, limits=Limits(fragment=limit, shard=200, message=1 << 20)
    )
    encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
    return [fragment.value for piece in pieces for fragment in encoder.encode(piece)]


@given(st.data(), making.events, st.integers(2, 400), st.integers(1, 300))
def test_a_stored_batch_decodes_to_the_same_changes(data: Any, event: list[Any], size: int, limit: int) -> None:
    pieces = data.draw(making.pieces(event))

    found = through(pieces, size)

    assert found == [piece.changes for piece in pieces]
    back = [TransactionBatch(piece.begin, changes, piece.ending) for piece, changes in zip(pieces, found, strict=True)]
    assert fragments(back, limit) == fragments(pieces, limit)


def test_changes_of_one_table_share_one_layout() -> None:
    """The encoder goes by identity: it would cut, and write heads, as for so many tables."""
    layout = making.TableLayout(making.TableName("s", "t"), (making.Column("c", "int"),), (0,))
    values: list[dict[str, Any]] = [{"before": None, "after": [1]}]
    pieces = [
        TransactionBatch(None, list(making.whole([making.Change(layout, action, values)])[0].changes), None)
        for action in (making.Action.INSERT, making.Action.UPDATE, making.Action.INSERT)
    ]
    found = [change for changes in through(pieces, 50) for change in changes]
    assert all(isinstance(change, Rows) for change in found)
    assert len({id(change.layout) for change in found if isinstance(change, Rows)}) == 1


@given(st.data(), making.events)
def test_a_changed_byte_is_damage(data: Any, event: list[Any]) -> None:
    (message,) = messages(making.whole(event)[0].changes, sys.maxsize)
    at = data.draw(st.integers(0, len(message) - 1))
    bit = 1 << data.draw(st.integers(1 if at == 0 else 0, 7))
    with pytest.raises(LogDamaged):
        BatchDecoder().feed(message[:at] + bytes([message[at] ^ bit]) + message[at + 1 :])


def test_an_unfinished_batch_is_not_given() -> None:
    event = [making.Statement("s", "x" * 100)]
    first, *rest = messages(making.whole(list(event))[0].changes, 20)
    decoder = BatchDecoder()
    assert decoder.feed(first) is None
    with pytest.raises(LogDamaged):
        decoder.feed(rest[-1])
