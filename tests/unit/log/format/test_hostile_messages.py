"""Damaged bytes with a right checksum are read, or raise an error of this package with their place."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator

import pytest

from connector.errors import ConnectorError, LogDamaged
from connector.kafka.records import control_state, position_record
from connector.log.rules import Rule
from tests.fuzz.log_readers import MESSAGE_READERS, read_message, read_record
from tests.fuzz.messages import CHECK, OPENING, changed, changed_record, message_seeds, record_seeds, resealed
from tests.support.broken_rules import breaks
from tests.support.fragments import change, encoded, in_parts, record, scanned, statement

SEED = 20_261_122


def mutants(seed: int) -> Iterator[list[ConnectorError]]:
    """The errors of one mutant after the other; any other exception goes through."""
    draw = random.Random(seed)
    messages, records = message_seeds(), record_seeds()
    while True:
        if draw.random() < 0.7:
            message = changed(draw.choice(messages), draw.choice(messages), draw)
            yield list(read_message(message))
        else:
            yield list(read_record(changed_record(draw.choice(records), draw.choice(records), draw)))


def test_undamaged_seeds_are_read() -> None:
    """Rows by each reader; of some others, which are no whole events or have no rows, some readers say so."""
    told = [len(list(read_message(message))) for message in message_seeds()]
    assert told[:4] == [0] * 4
    assert max(told) < len(MESSAGE_READERS)
    assert sum(len(list(read_record(one))) for one in record_seeds()) == 1  # a prepared transaction without its pieces


def test_damaged_messages_raise_errors_with_their_place() -> None:
    found = mutants(SEED)
    errors = [error for _ in range(3000) for error in next(found)]
    assert len(errors) > 3000
    assert all(isinstance(error, ConnectorError) for error in errors)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_damaged_messages_raise_errors_with_their_place_for_minutes(seed: int) -> None:
    end = time.monotonic() + 60
    for _ in mutants(seed):
        if time.monotonic() > end:
            break


@pytest.mark.parametrize(
    "damage",
    [
        {"key_columns": [2]},
        {"key_columns": [-1]},
        {"rows": [{"before": None, "after": [1]}]},
        {"rows": [{"before": None, "after": [1, "a", 2]}]},
        {"rows": [{"before": [1, "a"], "after": [1, "a"]}]},
        {"rows": [{"before": None, "after": None}]},
        {"columns": []},
        {"after_present": b"\1"},
    ],
    ids=str,
)
def test_change_that_does_not_fit_its_table_is_refused(damage: dict[str, object]) -> None:
    message = encoded(record(0, [change("insert", [(None, [1, "a"])]) | damage]))
    for name in ("list", "consume"):
        with pytest.raises(LogDamaged) as raised:
            MESSAGE_READERS[name](message)
        assert raised.value.where["at"] == "thl.s-0@0"


@pytest.mark.parametrize("commit_time", [-1, 1 << 62, 253_402_214_400_000_001])
def test_impossible_commit_time_is_refused(commit_time: int) -> None:
    message = encoded(record(0, [], commit_time=commit_time))
    for name in ("heads", "list", "header", "consume", "assembly", "spark", "collapse with columns"):
        with pytest.raises(LogDamaged) as raised:
            MESSAGE_READERS[name](message)
        assert raised.value.where["at"] == "thl.s-0@0"


@pytest.mark.parametrize("part_first", [True, False])
def test_row_part_beside_another_change_is_refused(part_first: bool) -> None:
    whole = change("insert", [(None, [1, "a"])])
    beside = [in_parts(whole, 1)[0], whole]
    message = encoded(record(0, beside if part_first else beside[::-1], rows=2))
    for name in ("undo", "list", "consume", "spark"):
        with pytest.raises(LogDamaged) as raised:
            MESSAGE_READERS[name](message)
        assert str(raised.value.where["at"]).startswith("thl.s")


def test_text_that_is_not_utf8_is_refused_by_spark() -> None:
    message = encoded(record(0, [change("insert", [(None, [1, "?!"])])]))
    body = message[10:-4].replace(b"?!", b"\xff\xfe")
    with breaks(Rule.NOT_UTF8, first_seqno=0, last_seqno=0):
        MESSAGE_READERS["spark"](message[:10] + resealed(body))


@pytest.mark.parametrize("value", [b"[" * 100_000, b'{"log_id":1,"created":0,"format":1}', b"\xff", b"null", b"7"])
def test_record_of_another_form_is_refused(value: bytes) -> None:
    with breaks(Rule.UNDECODABLE, key=b"log"):
        control_state([(b"log", value)])
    with breaks(Rule.UNDECODABLE, value=value[:200]):
        position_record(value)


@pytest.mark.parametrize("name", ["epoch", "first_seqno", "source_id", "reason", "filters"])
def test_record_value_of_another_type_is_refused(name: str) -> None:
    key, value = next((key, value) for _, key, value in record_seeds() if key.startswith(b"epoch:"))
    for wrong in ([], {}, 1.5, True, 1 << 64):
        with breaks(Rule.UNDECODABLE, key=key):
            control_state([(key, json.dumps(json.loads(value) | {name: wrong}).encode())])


@pytest.mark.parametrize("changes", [[], [statement("DROP TABLE t")], [statement("x"), statement("y")]])
def test_bytes_after_the_last_statement_are_refused(changes: list[dict[str, object]]) -> None:
    message = encoded(record(0, changes))
    (right,) = scanned([message])
    assert len(right.statements("t")) == len(changes)
    body = message[OPENING[message[0]] : -CHECK]
    (longer,) = scanned([message[: OPENING[message[0]]] + resealed(body + b"\0")])
    with breaks(Rule.UNDECODABLE, at="t-0@0", seqno=0):
        longer.statements("t")
