"""A partition's messages are grouped into attempts at events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.inspect.thl_events import attempts as module
from connector.inspect.thl_events.attempts import Attempt, attempts
from tests.support.fragments import encoded, record


def placed(seqno: int, fragno: int = 0, *, last: bool = False, epoch: int = 1, kind: str = "transaction") -> bytes:
    return encoded(record(seqno, fragno=fragno, last_frag=last, epoch=epoch, kind=kind))


def found(*messages: bytes, first: int = 0) -> list[Attempt]:
    numbered = enumerate(messages, first)
    return list(attempts(3, numbered, lambda offset, _: {"at": offset}))


def test_an_attempt_that_is_given_up_unfinished_or_without_its_beginning_is_not_whole() -> None:
    seen = found(
        placed(4, 7, last=True),  # retention deleted its beginning
        placed(5, 0, last=True),
        placed(6, 0), placed(6, 1),  # given up, and begun again in the same epoch
        placed(6, 0), placed(6, 1, last=True),
        placed(7, 0),
        placed(7, 0, kind="epoch", epoch=2, last=True),  # voids it
        placed(7, 0, epoch=2),
        first=100,
    )  # fmt: skip
    assert [(one.seqno, one.epoch, one.first, one.last, one.whole) for one in seen] == [
        (4, 1, 100, 100, False),
        (5, 1, 101, 101, True),
        (6, 1, 102, 103, False),
        (6, 1, 104, 105, True),
        (7, 1, 106, 106, False),
        (7, 2, 108, 108, False),
    ]
    assert [one.ending for one in seen if one.whole] == [{"at": 101}, {"at": 105}]
    assert {one.partition for one in seen} == {3}


def test_a_large_attempt_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = placed(1, 0, last=True), [placed(2, 0), placed(2, 1), placed(2, 2, last=True)]
    monkeypatch.setattr(module, "KEPT_BYTES", len(large[0]) * 2)
    one, other = found(small, *large)
    assert one.held == ((0, small),)
    assert (other.held, other.first, other.last, other.whole) == (None, 1, 3, True)


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=20))
def test_every_message_belongs_to_one_attempt(events: list[tuple[int, bool]]) -> None:
    """Events of some fragments, given up at first or not."""

    def given() -> Iterator[tuple[bytes, bool]]:
        for seqno, (count, given_up) in enumerate(events):
            if given_up:
                yield from ((placed(seqno, number), False) for number in range(count))
            yield from ((placed(seqno, number, last=number == count - 1), True) for number in range(count))

    messages = list(given())
    told = found(*(value for value, _ in messages))
    assert [pair for one in told for pair in one.held or ()] == list(enumerate(value for value, _ in messages))
    assert [one.whole for one in told for _ in one.held or ()] == [whole for _, whole in messages]
