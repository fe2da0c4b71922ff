"""Numbers of the wire: one encoding, and the same three refusals for every reader of a message."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.log.format.varint import read_long, write_long
from connector.log.rules import BrokenRule, Rule

LONGEST = 2**63 - 1
LEAST = -(2**63)
TOO_LONG = [b"\xff" * 10 + b"\x00", b"\x80" * 11, b"\xff" * 9 + b"\x80\x00", b"\x80" * 10 + b"\x01"]
TOO_LARGE = [b"\xff" * 9 + b"\x7e", b"\xff" * 9 + b"\x02", b"\x80" * 9 + b"\x03", b"\xff" * 9 + b"\x7f"]
TRUNCATED = [b"", b"\x80", b"\xff" * 9]


@given(st.integers(LEAST, LONGEST), st.binary(max_size=3), st.binary(max_size=3))
def test_number_between_other_bytes_reads_back(number: int, before: bytes, after: bytes) -> None:
    written = write_long(number)
    assert read_long(before + written + after, len(before)) == (number, len(before) + len(written))


@given(st.integers(LEAST, LONGEST))
def test_number_is_written_as_fastavro_writes_it(number: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, {"type": "long"}, number)
    assert write_long(number) == out.getvalue()


@pytest.mark.parametrize("number", [LONGEST + 1, LEAST - 1, 1 << 70])
def test_number_of_more_than_64_bits_is_not_written(number: int) -> None:
    with pytest.raises(OverflowError):
        write_long(number)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        *((data, "longer than ten bytes") for data in TOO_LONG),
        *((data, "larger than 64 bits") for data in TOO_LARGE),
        *((data, "cut off") for data in TRUNCATED),
    ],
)
def test_damaged_number_is_refused(data: bytes, number: str) -> None:
    with pytest.raises(BrokenRule) as refused:
        read_long(b"\x01" + data, 1)
    assert (refused.value.rule, refused.value.where) == (Rule.NUMBER, {"number": number})


@pytest.mark.parametrize("at", [-1, 1, 2])
def test_index_outside_the_data_is_refused(at: int) -> None:
    with pytest.raises(BrokenRule) as refused:
        read_long(b"\x02", at)
    assert refused.value.where == {"number": "cut off"}


def test_longest_numbers_are_read() -> None:
    assert read_long(b"\xff" * 9 + b"\x01", 0) == (LEAST, 10)
    assert read_long(b"\xfe" + b"\xff" * 8 + b"\x01", 0) == (LONGEST, 10)
    assert read_long(b"\x82\x80\x80\x00", 0) == (1, 4)  # longer than it has to be: Avro allows it
