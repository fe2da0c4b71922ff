"""Text of every multi-byte set decodes as a MySQL server decodes it, character by character.

`tests/testdata/charsets.json` was written by `tests/support/make_charsets.py` from a server's answers: how many
characters a set has and a digest of all pairs of bytes and meaning.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters
from connector.errors import ValueNotRepresentable
from connector.mysql.transforms.filters import Filter
from connector.mysql.values import charsets
from connector.mysql.values.collations import COLLATIONS, charset_of, collation_of
from connector.mysql.values.multibyte import FOUR, LONGEST, codes
from connector.mysql.values.text import multibyte_text
from tests.support.binlog import row_changes, whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image, through
from tests.support.make_charsets import SUPPLEMENTARY, digest, four_bytes

FACTS = json.loads(Path("tests/testdata/charsets.json").read_text())["sets"]
COLLATION = {name: collation_of(name) for name, _ in COLLATIONS.values()}
SETS = sorted(LONGEST)


@cache
def pairs(charset: str) -> dict[bytes, str]:
    """What our decoder makes of every sequence that may be a character."""
    tried = [bytes([n]) for n in range(256)] + [n.to_bytes(2, "big") for n in range(0x8000, 0x10000)]
    if LONGEST[charset] == 3:
        tried += [b"\x8f" + n.to_bytes(2, "big") for n in range(0x10000)]
    if LONGEST[charset] == 4:
        tried += [four_bytes(n) for n in range(FOUR + 1000)]
    found = {}
    for raw in tried:
        try:
            text = charsets.decode(raw, charset)
        except ValueNotRepresentable:
            continue
        if len(text) == 1:
            found[raw] = text
    if LONGEST[charset] == 4:
        beyond = [four_bytes(SUPPLEMENTARY + n) for n in range(0x100000)]
        found |= zip(beyond, charsets.decode(b"".join(beyond), charset), strict=True)
    return found


@pytest.mark.parametrize("charset", SETS)
def test_every_character_decodes_as_the_server_decodes_it(charset: str) -> None:
    found = pairs(charset)

    assert len(found) == FACTS[charset]["characters"]
    assert digest(found) == FACTS[charset]["sha256"]


# Among them some of which Python's codecs say something else: 815f in sjis, a1c0 in ujis, a1c1 in eucjpms, a8bc in
# gb18030, a15a in big5.
@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("sjis", "5c", "\\"),
        ("sjis", "815f", "\\"),
        ("sjis", "b1", "ｱ"),
        ("cp932", "815f", "＼"),
        ("cp932", "8160", "～"),
        ("cp932", "8790", "≒"),
        ("ujis", "a1c0", "\\"),
        ("ujis", "8ea1", "｡"),
        ("ujis", "8fb0a1", "丂"),
        ("eucjpms", "a1c1", "～"),
        ("eucjpms", "ada1", "①"),
        ("eucjpms", "8ff3f3", "ⅰ"),
        ("gbk", "a1a4", "·"),
        ("gbk", "a1aa", "—"),
        ("gb2312", "a1a4", "・"),
        ("gb2312", "a1aa", "―"),
        ("gb18030", "80", None),
        ("gb18030", "a2e3", "€"),
        ("gb18030", "81308130", "\x80"),
        ("gb18030", "8135f437", "\ue7c7"),
        ("gb18030", "a8bc", "ḿ"),
        ("gb18030", "90308130", "\U00010000"),
        ("gb18030", "e3329a35", "\U0010ffff"),
        ("gb18030", "e3329a36", None),
        ("gb18030", "fe39fe39", None),
        ("gbk", "a2e3", None),
        ("gbk", "80", None),
        ("big5", "a440", "一"),
        ("big5", "a145", "•"),
        ("big5", "a15a", "\ufffd"),
        ("euckr", "b0a1", "가"),
        ("euckr", "8141", "갂"),
        ("euckr", "a2e6", "€"),
        ("euckr", "c9a1", None),
    ],
)
def test_single_character_is_decoded(charset: str, raw: str, text: str | None) -> None:
    assert pairs(charset).get(bytes.fromhex(raw)) == text


@given(st.sampled_from(SETS), st.data())
def test_text_is_the_concatenation_of_its_characters(charset: str, data: st.DataObject) -> None:
    known = sorted(pairs(charset)) if charset != "gb18030" else [four_bytes(n) for n in range(FOUR)]
    ascii_too = st.one_of(st.sampled_from(known), st.binary(max_size=20).map(lambda raw: bytes(b & 0x7F for b in raw)))
    chars = data.draw(st.lists(ascii_too, max_size=30))

    text = charsets.decode(b"".join(chars), charset)

    assert text == "".join(pairs(charset).get(char) or char.decode() for char in chars)


@given(st.sampled_from(SETS), st.binary(max_size=40))
def test_any_bytes_are_decoded_or_refused_at_the_first_invalid_one(charset: str, raw: bytes) -> None:
    try:
        text = charsets.decode(raw, charset)
    except ValueNotRepresentable as error:
        at = error.where["at"]
        assert isinstance(at, int)
        assert error.where["bytes"] == raw[at : at + 8].hex()
        charsets.decode(raw[:at], charset)
        assert not any(raw[at : at + size] in pairs(charset) for size in range(1, 5))
    else:
        assert len(text) <= len(raw)


@pytest.mark.parametrize("charset", SETS)
def test_values_and_labels_of_a_row_are_decoded(tmp_path: Path, charset: str) -> None:
    known = pairs(charset)
    few = [raw for raw in sorted(known) if raw[0] >= 0x80][:: max(1, len(known) // 500)]
    raw, text = b"a" + b"b".join(few), "a" + "b".join(known[char] for char in few)
    column = ColumnDef(252, b"\x02", collation=COLLATION[charset])
    assert through(tmp_path, column, [struct.pack("<H", len(raw)) + raw]) == [text]

    label = few[0] * 3
    labelled = ColumnDef(254, b"\xf7\x01", collation=COLLATION[charset], labels=(b"x", label))
    assert through(tmp_path, labelled, [b"\x02"]) == [known[few[0]] * 3]

    with pytest.raises(ValueNotRepresentable) as caught:
        through(tmp_path, column, [struct.pack("<H", 4) + b"ab\xff\xff"])
    where = caught.value.where
    assert {"file", "pos", "event", "table", "column"} <= where.keys()
    assert (where["charset"], where["bytes"], where["at"]) == (charset, "ffff", 2)
    assert "source.keep_invalid_text" in caught.value.hint


@pytest.mark.parametrize(
    ("charset", "bad"),
    [
        *((charset, b"a\xff") for charset in (*SETS, "utf8mb4")),
        ("utf16", b"\xd8\0\0a"),
        ("ucs2", b"a"),
        ("ascii", b"a\x80"),
        ("hebrew", b"\xff"),
        ("tis620", None),
        ("latin1", None),
    ],
)
def test_invalid_text_is_kept_as_bytes_if_configured(tmp_path: Path, charset: str, bad: bytes | None) -> None:
    log = LogWriter()
    log.begin()
    log.table_map([ColumnDef(252, b"\x02", collation=COLLATION[charset])] * 2)
    good = "a".encode(charsets.WIDE.get(charset, "ascii"))
    values = [struct.pack("<H", len(raw)) + raw for raw in (good, good if bad is None else bad)]
    log.rows(30, 2, image(values) + image([values[0], values[0]]))
    log.commit()
    path = tmp_path / "log.000001"
    path.write_bytes(log.data)

    found = row_changes(whole_file(path, filters=Filter(Filters(), keep_invalid_text=("s.t.c1",))), "t")

    assert found == [("INSERT", None, ["a", "a" if bad is None else bad]), ("INSERT", None, ["a", "a"])]
    if bad is not None:
        with pytest.raises(ValueNotRepresentable):
            whole_file(path, filters=Filter(Filters(), keep_invalid_text=("s.t.c0",)))


def test_invalid_label_is_refused_with_its_column(tmp_path: Path) -> None:
    labelled = ColumnDef(254, b"\xf7\x01", collation=COLLATION["gbk"], labels=(b"x", b"\xff\xff"))
    with pytest.raises(ValueNotRepresentable) as caught:
        through(tmp_path, labelled, [b"\x02"])
    assert {"file", "pos", "table", "column", "bytes"} <= caught.value.where.keys()


def test_a_text_that_ends_within_a_character_is_refused() -> None:
    for charset, raw in (("gbk", "b0"), ("ujis", "8fb0"), ("gb18030", "813081"), ("gb18030", "8130"), ("sjis", "81")):
        with pytest.raises(ValueNotRepresentable) as raised:
            charsets.decode(bytes.fromhex("41" + raw), charset)
        assert raised.value.where == {"bytes": raw, "at": 1}


def test_collation_ids_derived_from_names_equal_the_recorded_ones() -> None:
    runs = json.loads(Path("tests/testdata/collations.json").read_text())["runs"]
    recorded = {number: name for first, last, name in runs for number in range(first, last + 1)}

    assert len(recorded) == 286
    assert {number: charset_of(number) for number in COLLATIONS} == recorded


def test_code_table_of_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError):
        multibyte_text(b"a", codes("gbk"), 3)


def test_every_character_set_can_be_decoded() -> None:
    for name in {charset for charset, _ in COLLATIONS.values()}:
        assert name == "binary" or charsets.decode(b"\0\0\0A\0\0A\0", name)
