"""Row images as literals of MySQL: nothing but a value gets into a statement, and damaged images are refused."""

from __future__ import annotations

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.targets.mysql.json_exact import json_literal
from connector.targets.mysql.sql_values import Kind, NotALiteral, value_rows
from tests.support.net import Row, images, varint


def written(row: Row, *kinds: Kind) -> bytes:
    made = images([row])
    return value_rows(made.data, made.ends, 0, bytes(kinds), list(range(len(kinds))), 1 << 20, 10)[0]


@pytest.mark.parametrize(
    ("value", "kind", "literal"),
    [
        (None, Kind.TEXT, b"NULL"),
        (-(2**63), Kind.NUMBER, b"-9223372036854775808"),
        ("18446744073709551615", Kind.NUMBER, b"18446744073709551615"),
        ("-0.10", Kind.NUMBER, b"-0.10"),
        (-0.0, Kind.REAL, b"-0.0000000000000000e+00"),
        (0.1, Kind.REAL, b"1.0000000000000001e-01"),
        ("it's \\ \0 ü", Kind.TEXT, "'it\\'s \\\\ \\0 ü'".encode()),
        (b"\0\xff'", Kind.BYTES, b"_binary'\\0\xff\\''"),
        (b"\xe9", Kind.TEXT, b"_binary'\xe9'"),
        (b"\1\0", Kind.BITS, b"256"),
        ('{"a": "1.10"}', Kind.JSON, b'\'{"a": "1.10"}\''),
        ('{"a": 1.10}', Kind.JSON, b"JSON_OBJECT('a', 1.10)"),
    ],
)
def test_value_is_written_as_its_literal(value: int | float | str | bytes | None, kind: Kind, literal: bytes) -> None:
    assert written((value,), kind) == b"(" + literal + b")"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1); DROP TABLE t", Kind.NUMBER),
        ("", Kind.NUMBER),
        ("1e5", Kind.NUMBER),
        (b"1", Kind.NUMBER),
        (float("nan"), Kind.REAL),
        (float("inf"), Kind.REAL),
        (1, Kind.REAL),
        (b"x" * 9, Kind.BITS),
        (0.5, Kind.TEXT),
    ],
)
def test_value_that_its_type_does_not_have_is_refused(value: int | float | str | bytes, kind: Kind) -> None:
    with pytest.raises(NotALiteral) as refused:
        written((None, value), Kind.TEXT, kind)
    assert (refused.value.image, refused.value.column) == (0, 1)


def test_images_are_cut_by_bytes_and_by_number_and_in_any_order() -> None:
    made = images([(n, "x" * n) for n in range(5)])
    kinds = bytes((Kind.NUMBER, Kind.TEXT))
    assert value_rows(made.data, made.ends, 0, kinds, [1, 0], 1 << 20, 2) == (b"('',0),('x',1)", 2)
    assert value_rows(made.data, made.ends, 2, kinds, [1], 1, 9) == (b"('xx')", 3)
    assert value_rows(made.data, made.ends, 5, kinds, [1], 1 << 20, 9) == (b"", 5)


@pytest.mark.parametrize(
    ("data", "ends"),
    [
        (varint(1), [1]),  # a long without its number
        (varint(3) + varint(5) + b"abc", [5]),  # text beyond the end
        (varint(0), [2]),  # an image beyond the data
        (varint(0) * 3, [3]),  # more values than columns
        (varint(7), [1]),  # a kind that the log has not
        (varint(2) + struct.pack("<d", 1.0)[:4], [5]),
    ],
)
def test_damaged_images_are_refused(data: bytes, ends: list[int]) -> None:
    with pytest.raises(ValueError):
        value_rows(data, array("Q", ends), 0, bytes([Kind.TEXT]), [0], 1 << 20, 10)


@given(st.text())
def test_quoted_text_ends_where_the_value_ends(text: str) -> None:
    literal = written((text,), Kind.TEXT)[1:-1].decode()
    assert literal[0] == literal[-1] == "'"
    inner, plain, at = literal[1:-1], "", 0
    while at < len(inner):
        if inner[at] == "\\":
            at += 1
            plain += "\0" if inner[at] == "0" else inner[at]
        else:
            assert inner[at] != "'"
            plain += inner[at]
        at += 1
    assert plain == text


@pytest.mark.parametrize(
    ("document", "literal"),
    [
        ("1.10", "CAST(1.10 AS JSON)"),
        ("[1.5, 1e300, 18446744073709551615]", "'[1.5, 1e300, 18446744073709551615]'"),
        ("[18446744073709551616]", "JSON_ARRAY(18446744073709551616)"),
        (
            '{"a\'b": [2.50, true, null, "1.10", 3]}',
            "JSON_OBJECT('a''b', JSON_ARRAY(2.50, CAST('true' AS JSON), CAST('null' AS JSON), "
            "CAST('\"1.10\"' AS JSON), CAST('3' AS JSON)))",
        ),
    ],
)
def test_document_keeps_its_numbers(document: str, literal: str) -> None:
    assert json_literal(document) == literal
