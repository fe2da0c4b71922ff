"""Row images as literals of MySQL: nothing but a value gets into a statement, and damaged images are refused."""

from __future__ import annotations

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.targets.mysql.sql.json_exact import json_literal
from connector.targets.mysql.sql.sql_values import LiteralKind, NotALiteral, line_rows, value_rows
from tests.support.net import Row, images, varint


def written(row: Row, *kinds: LiteralKind) -> bytes:
    made = images([row])
    return value_rows(made.data, made.ends, 0, bytes(kinds), list(range(len(kinds))), 1 << 20, 10)[0]


@pytest.mark.parametrize(
    ("value", "kind", "literal"),
    [
        (None, LiteralKind.TEXT, b"NULL"),
        (-(2**63), LiteralKind.NUMBER, b"-9223372036854775808"),
        ("18446744073709551615", LiteralKind.NUMBER, b"18446744073709551615"),
        ("-0.10", LiteralKind.NUMBER, b"-0.10"),
        (-0.0, LiteralKind.REAL, b"-0.0000000000000000e+00"),
        (0.1, LiteralKind.REAL, b"1.0000000000000001e-01"),
        ("it's \\ \0 ü", LiteralKind.TEXT, "'it\\'s \\\\ \\0 ü'".encode()),
        (b"\0\xff'", LiteralKind.BYTES, b"_binary'\\0\xff\\''"),
        (b"\xe9", LiteralKind.TEXT, b"_binary'\xe9'"),
        (b"\1\0", LiteralKind.BITS, b"256"),
        ('{"a": "1.10"}', LiteralKind.JSON, b'\'{"a": "1.10"}\''),
        ('{"a": 1.10}', LiteralKind.JSON, b"JSON_OBJECT('a', 1.10)"),
    ],
)
def test_value_is_written_as_its_literal(
    value: int | float | str | bytes | None, kind: LiteralKind, literal: bytes
) -> None:
    assert written((value,), kind) == b"(" + literal + b")"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1); DROP TABLE t", LiteralKind.NUMBER),
        ("", LiteralKind.NUMBER),
        ("1e5", LiteralKind.NUMBER),
        (b"1", LiteralKind.NUMBER),
        (float("nan"), LiteralKind.REAL),
        (float("inf"), LiteralKind.REAL),
        (1, LiteralKind.REAL),
        (b"x" * 9, LiteralKind.BITS),
        (0.5, LiteralKind.TEXT),
    ],
)
def test_value_that_its_type_does_not_have_is_refused(value: int | float | str | bytes, kind: LiteralKind) -> None:
    with pytest.raises(NotALiteral) as refused:
        written((None, value), LiteralKind.TEXT, kind)
    assert (refused.value.image, refused.value.column) == (0, 1)


def test_images_are_cut_by_bytes_and_by_number_and_in_any_order() -> None:
    made = images([(n, "x" * n) for n in range(5)])
    kinds = bytes((LiteralKind.NUMBER, LiteralKind.TEXT))
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
        value_rows(data, array("Q", ends), 0, bytes([LiteralKind.TEXT]), [0], 1 << 20, 10)


@pytest.mark.parametrize(
    ("value", "kind", "field"),
    [
        (None, LiteralKind.TEXT, b"\\N"),
        ("\\N", LiteralKind.TEXT, b"\\\\N"),
        ("NULL", LiteralKind.TEXT, b"NULL"),
        ("", LiteralKind.TEXT, b""),
        ("a\tb\nc\\\r\0'\"ü", LiteralKind.TEXT, b"a\\tb\\nc\\\\\r\0'\"\xc3\xbc"),
        (-(2**63), LiteralKind.NUMBER, b"-9223372036854775808"),
        ("-0.10", LiteralKind.NUMBER, b"-0.10"),
        (-0.0, LiteralKind.REAL, b"-0.0000000000000000e+00"),
        (b"\0\xff\n", LiteralKind.BYTES, b"00FF0A"),
        (b"", LiteralKind.BYTES, b""),
        (b"\1\0", LiteralKind.BITS, b"0100"),
        (0, LiteralKind.YEAR, b"0000"),
        (1901, LiteralKind.YEAR, b"1901"),
        ('{"a": "1.10\\n", "b": 1.5}', LiteralKind.JSON, b'{"a": "1.10\\\\n", "b": 1.5}'),
    ],
)
def test_value_is_written_as_a_field_of_a_line(
    value: int | float | str | bytes | None, kind: LiteralKind, field: bytes
) -> None:
    made = images([(value, 7)])
    lines, end = line_rows(made.data, made.ends, 0, bytes((kind, LiteralKind.NUMBER)), [0, 1], 1 << 20)
    assert (lines, end) == (field + b"\t7\n", 1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"\xe9", LiteralKind.TEXT),  # bytes that mean nothing in the column's character set
        (3, LiteralKind.TEXT),  # the number of a label
        (0.5, LiteralKind.TEXT),
        ('{"a": 1.10}', LiteralKind.JSON),
        (b"{}", LiteralKind.JSON),
        ("1); DROP TABLE t", LiteralKind.NUMBER),
        (b"1", LiteralKind.NUMBER),
        (float("nan"), LiteralKind.REAL),
        ("text", LiteralKind.BYTES),
        (10_000, LiteralKind.YEAR),
        (-1, LiteralKind.YEAR),
    ],
)
def test_lines_end_before_a_value_that_only_a_literal_may_have(
    value: int | float | str | bytes, kind: LiteralKind
) -> None:
    made = images([(1, None), (2, value), (3, None)])
    kinds = bytes((LiteralKind.NUMBER, kind))
    assert line_rows(made.data, made.ends, 0, kinds, [0, 1], 1 << 20) == (b"1\t\\N\n", 1)
    assert line_rows(made.data, made.ends, 1, kinds, [0, 1], 1 << 20) == (b"", 1)
    assert line_rows(made.data, made.ends, 1, kinds, [0], 1 << 20) == (b"2\n3\n", 3)


def test_lines_are_cut_by_bytes() -> None:
    made = images([(n, "x" * n) for n in range(5)])
    assert line_rows(made.data, made.ends, 2, bytes((LiteralKind.NUMBER, LiteralKind.TEXT)), [1, 0], 6) == (
        b"xx\t2\nxxx\t3\n",
        4,
    )
    assert line_rows(made.data, made.ends, 5, bytes((LiteralKind.NUMBER, LiteralKind.TEXT)), [1, 0], 5) == (b"", 5)


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_texts_of_lines_are_read_as_the_server_reads_them(rows: list[tuple[str, str]]) -> None:
    made = images(rows)
    lines, end = line_rows(made.data, made.ends, 0, bytes((LiteralKind.TEXT, LiteralKind.TEXT)), [0, 1], 1 << 30)
    assert end == len(rows)
    read: list[list[str]] = [[""]]
    characters = iter(lines.decode())
    for character in characters:
        if character == "\n":
            read.append([""])
        elif character == "\t":
            read[-1].append("")
        else:
            escaped = {"t": "\t", "n": "\n", "\\": "\\"}
            read[-1][-1] += escaped[next(characters)] if character == "\\" else character
    assert read == [*map(list, rows), [""]]


@given(st.text())
def test_quoted_text_ends_where_the_value_ends(text: str) -> None:
    literal = written((text,), LiteralKind.TEXT)[1:-1].decode()
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


def test_raw_bytes_of_a_line_are_escaped_and_not_changed() -> None:
    made = images([(b"\x00\xff\t\\\n'",), (None,), ("text",)])
    assert line_rows(made.data, made.ends, 0, bytes((LiteralKind.RAW,)), [0], 1 << 20) == (
        b"\x00\xff\\t\\\\\\n'\n\\N\n",
        2,
    )
