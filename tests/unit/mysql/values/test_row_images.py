"""An image has only the columns of its bitmap; JSON differences are applied to the whole document."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters
from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction.batch import Rows
from connector.mysql.transforms.filters import Filter
from connector.mysql.values import json_diff
from connector.mysql.values.json_diff import patched
from connector.mysql.values.jsontext import text_of
from tests.support.binlog import changes, images, row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image, packed, read_back

INT = ColumnDef(3, unsigned=False)
JSON = ColumnDef(245, b"\x04")


def bits(columns: set[int], width: int, beyond: int = 0) -> bytes:
    """A bit per column; those beyond the last are whatever the server leaves there."""
    number = sum(1 << column for column in columns) | (beyond << width)
    return number.to_bytes((width + 7) // 8 + 1, "little")[: (width + 7) // 8]


def shown(values: list[int | None]) -> bytes:
    return image([None if value is None else struct.pack("<i", value) for value in values])


@st.composite
def parts(draw: st.DrawFn, width: int) -> tuple[set[int], set[int], int]:
    some = st.sets(st.integers(0, width - 1), min_size=1)
    return draw(some), draw(some), draw(st.sampled_from([30, 31, 32]))


@given(st.data(), st.integers(1, 20))
def test_images_with_any_columns_are_decoded(data: st.DataObject, width: int) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT] * width)
    expected = []
    for _ in range(data.draw(st.integers(1, 4))):
        old, new, kind = data.draw(parts(width))
        beyond = data.draw(st.integers(0, 255))
        numbers = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))
        rows = []
        for _ in range(data.draw(st.integers(1, 3))):
            before = None if kind == 30 else [data.draw(numbers) for _ in old]
            after = None if kind == 32 else [data.draw(numbers) for _ in new]
            rows.append((before, after))
        body = b"".join(shown(one) for row in rows for one in row if one is not None)
        log.rows(
            kind, width, body, present=bits(new if kind == 30 else old, width, beyond), after=bits(new, width, beyond)
        )
        whole = set(range(width))
        there = tuple(
            b"" if one in (None, whole) else bits(one, width)
            for one in (None if kind == 30 else old, None if kind == 32 else new)
        )
        expected += [(kind - 30, *there, row) for row in rows]
    log.commit()

    with TemporaryDirectory() as folder:
        found = [change for change in changes(read_back(log, Path(folder))) if isinstance(change, Rows)]

    told = [(change.action, change.before, change.after, row) for change in found for row in images(change)]
    assert told == expected
    kinds = [(change.action, change.before, change.after) for change in found]
    assert all(one != other for one, other in pairwise(kinds)), "a run ends where columns change"


def test_a_row_without_any_column_is_one_row(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([INT, INT])
    log.rows(30, 2, b"", present=b"\x00")
    log.commit()
    assert row_changes(read_back(log, tmp_path), "t") == [("INSERT", None, [])]

    log = LogWriter()
    log.begin()
    log.table_map([INT, INT])
    log.rows(30, 2, b"\x00", present=b"\x00")
    log.commit()
    with pytest.raises(CorruptBinlog):
        read_back(log, tmp_path)


# Differences of JSON documents

DOCUMENT = (
    b"\x00"
    + bytes.fromhex("0200 1f00 1200 0100 1300 0200 0501 00 02 1500".replace(" ", ""))
    + b"abb"
    + (bytes.fromhex("0100 0a00 05 07 00".replace(" ", "")) + b"\0\0\0")
)  # {"a": 1, "bb": [7]}, with three bytes that nothing points to


def diff(operation: int, path: bytes, value: bytes | None = None) -> bytes:
    return bytes([operation]) + packed(len(path)) + path + (b"" if value is None else packed(len(value)) + value)


def diffs(*each: bytes) -> bytes:
    return b"".join(each)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ([], '{"a": 1, "bb": [7]}'),
        ([diff(0, b"$.a", b"\x0c\x02hi")], '{"a": "hi", "bb": [7]}'),
        ([diff(0, b"$", b"\x04\x00")], "null"),
        ([diff(1, b"$.bb[1]", b"\x04\x01")], '{"a": 1, "bb": [7, true]}'),
        ([diff(1, b"$.bb[9]", b"\x04\x01")], '{"a": 1, "bb": [7, true]}'),
        ([diff(1, b"$.bb[0]", b"\x04\x01")], '{"a": 1, "bb": [true, 7]}'),
        ([diff(1, b'$."c \\"d"', DOCUMENT)], '{"a": 1, "bb": [7], "c \\"d": {"a": 1, "bb": [7]}}'),
        ([diff(1, b"$.A", b"\x05\xff\xff")], '{"A": -1, "a": 1, "bb": [7]}'),
        ([diff(2, b"$.a")], '{"bb": [7]}'),
        ([diff(2, b"$.bb[last]"), diff(2, b"$.a")], '{"bb": []}'),
        ([diff(1, b"$.bb[1]", b"\x04\x01"), diff(2, b"$.bb[last-1]")], '{"a": 1, "bb": [true]}'),
        ([diff(1, b"$.c", b"\x04\x01"), diff(1, b"$.b", b"\x04\x00")], '{"a": 1, "b": null, "c": true, "bb": [7]}'),
        ([diff(0, b"$.a", DOCUMENT), diff(0, b"$.a.bb[0]", b"\x04\x02")], '{"a": {"a": 1, "bb": [false]}, "bb": [7]}'),
    ],
)
def test_json_differences_are_applied(made: list[bytes], text: str) -> None:
    assert patched(text_of(DOCUMENT), diffs(*made)).decode() == text


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (diffs(diff(0, b"$.x", b"\x04\x00")), CorruptBinlog),
        (diffs(diff(1, b"$.a", b"\x04\x00")), CorruptBinlog),
        (diffs(diff(2, b"$.x")), CorruptBinlog),
        (diffs(diff(2, b"$.bb[1]")), CorruptBinlog),
        (diffs(diff(0, b"$.a[0]", b"\x04\x00")), CorruptBinlog),
        (diffs(diff(0, b"$.a.b.c", b"\x04\x00")), CorruptBinlog),
        (diffs(diff(2, b"$")), CorruptBinlog),
        (diffs(diff(3, b"$.a")), Unsupported),
        (diffs(diff(2, b"$**.a")), Unsupported),
        (diffs(diff(2, b"a")), Unsupported),
        (diffs(diff(2, b"$.bb[]")), Unsupported),
        (diffs(diff(2, b"$.bb[last-]")), Unsupported),
        (diffs(diff(2, b"$.bb[last0]")), Unsupported),
        (diffs(diff(2, b"$.bb[last-1]")), CorruptBinlog),
        (diffs(diff(2, b"$.bb[0")), Unsupported),
        (diffs(diff(2, b'$."a')), Unsupported),
        (diffs(diff(2, b'$."\\ud800"')), Unsupported),
        (diffs(diff(2, b"$.a")) + b"\0", CorruptBinlog),
        (b"\x01", CorruptBinlog),
    ],
)
def test_json_differences_that_do_not_fit_are_refused(made: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        patched(text_of(DOCUMENT), made)


def test_the_members_of_an_object_are_put_in_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []

    def order(key: bytes) -> tuple[int, bytes]:
        keys.append(key)
        return len(key), key

    monkeypatch.setattr(json_diff, "_order", order)
    made = [diff(1, b"$.n%d" % number, b"\x04\x01") for number in range(100)]
    assert len(json.loads(patched(text_of(DOCUMENT), diffs(*made)))) == 102
    assert len(keys) == 102


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_damaged_json_documents_and_differences_are_refused(document: bytes, made: bytes) -> None:
    for before, after in ((document, diffs(diff(2, b"$.a"))), (b"\0" + document, diffs(diff(1, b"$.x", document)))):
        with suppress(CorruptBinlog, Unsupported):
            patched(text_of(before), after).decode()
    with pytest.raises((CorruptBinlog, Unsupported)):
        patched(text_of(DOCUMENT), made + b"\1")


BEFORE = b"\x00" + struct.pack("<I", len(DOCUMENT)) + DOCUMENT


def partial(options: bytes, after: bytes, *, before: bytes = BEFORE) -> LogWriter:
    log = LogWriter()
    log.begin()
    log.table_map([JSON, JSON])
    present = b"\x03" if len(before) > 5 else b"\x02"
    other = struct.pack("<I", 2) + b"\x04\x01"
    log.rows(39, 2, before + other + options + after, present=present, after=b"\x03")
    log.commit()
    return log


def test_only_columns_with_a_set_bit_are_differences(tmp_path: Path) -> None:
    made = diffs(diff(2, b"$.bb"))
    whole = struct.pack("<I", 2) + b"\x04\x02"
    found = row_changes(read_back(partial(b"\x01\x01\x00", struct.pack("<I", len(made)) + made + whole), tmp_path), "t")
    assert found == [("UPDATE", ['{"a": 1, "bb": [7]}', "true"], ['{"a": 1}', "false"])]
    assert row_changes(read_back(partial(b"\x00\x00", whole * 2), tmp_path), "t")[0][2] == ["false", "false"]


def test_differences_from_an_absent_document_are_refused(tmp_path: Path) -> None:
    made = diffs(diff(2, b"$.bb"))
    log = partial(b"\x01\x01\x00", struct.pack("<I", len(made)) + made + bytes(4), before=b"\x00")
    with pytest.raises(Unsupported) as caught:
        read_back(log, tmp_path)
    assert (caught.value.where["column"], str(caught.value.where["table"])) == ("c0", "s.t")
    with pytest.raises(CorruptBinlog):
        read_back(partial(b"\x02", b""), tmp_path)


def test_differences_from_an_absent_document_are_kept_for_a_record_store(tmp_path: Path) -> None:
    made = diffs(diff(2, b"$.bb"))
    store = Filter(Filters(), records=True)
    after = b"\x01\x01\x00" + struct.pack("<I", len(made)) + made + struct.pack("<I", 2) + b"\x04\x01"
    path = tmp_path / "log.000001"
    path.write_bytes(partial(b"", after, before=b"\x00").data)
    assert row_changes(whole_file(path, filters=store), "t") == [("UPDATE", ["true"], [made, "true"])]
    path.write_bytes(partial(b"", after).data)
    assert row_changes(whole_file(path, filters=store), "t")[0][2] == ['{"a": 1}', "true"]
    log = LogWriter()
    log.begin()
    log.table_map([JSON, JSON])
    log.rows(39, 2, b"\x01" + struct.pack("<I", 2) + b"\x04\x01" + after, present=b"\x03", after=b"\x03")
    log.commit()
    path.write_bytes(log.data)  # NULL is no absent document
    with pytest.raises(Unsupported, match="that the before image lacks"):
        whole_file(path, filters=store)


@pytest.mark.parametrize("together", [True, False], ids=["a row of the same event", "a row of an event before it"])
def test_document_of_another_row_is_never_the_base_of_a_difference(tmp_path: Path, together: bool) -> None:
    """Its bytes may be gone by then: the row has NULL, or its before image has not the column."""
    made = diffs(diff(2, b"$.bb"))
    other = struct.pack("<I", 2) + b"\x04\x01"
    after = b"\x01\x01\x00" + struct.pack("<I", len(made)) + made + other
    right = BEFORE + other + after
    log = LogWriter()
    log.begin()
    log.table_map([JSON, JSON])
    if together:
        log.rows(39, 2, right + b"\x01" + other + after, present=b"\x03", after=b"\x03")
    else:
        log.rows(39, 2, right, present=b"\x03", after=b"\x03")
        log.rows(39, 2, b"\x00" + other + after, present=b"\x02", after=b"\x03")
    log.commit()
    with pytest.raises(Unsupported) as caught:
        read_back(log, tmp_path)
    assert "binlog_row_value_options" in caught.value.hint
