"""Damaged files: whole transactions, one message, an exit code; and what `--salvage` prints."""

from __future__ import annotations

import gzip
import random
import re
import struct
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.binlog_command import INT, RECORDED, Told, binlog, gtid, transactions
from tests.support.binlog_writer import LogWriter, image
from tests.unit.mysql.binlog.test_recorded_log import events, resealed

WHOLE = binlog(RECORDED)
LINES = WHOLE.out.splitlines(keepends=True)
ENDS = [int(one["event_id"].partition(":")[2].partition(";")[0]) for one in WHOLE.objects]
DATA = RECORDED.read_bytes()
# Between transactions, where a file may end: a server that is still writing it has one that does.
BORDERS = {126 + 1, *ENDS, len(DATA)}


def refused(told: Told, file: object, lines: list[bytes]) -> None:
    """Check that every transaction before the damage was printed whole, and one message names the position."""
    assert told.code in {5, 6}
    assert told.out == b"".join(lines)
    messages = [line for line in told.err.splitlines() if not line.startswith("  hint: ")]
    assert len(messages) == 1
    assert messages[0].startswith("thl: ")
    assert f"file={file} pos=" in messages[0]


def at(file: object, pos: int, event: str = "", **fields: object) -> str:
    """The end of a message about damage: its position and fields."""
    named = {"event": event or None, **fields}
    shown = "".join(f" {name}={value}" for name, value in named.items() if value is not None)
    return f"[file={file} pos={pos}{shown}]\n"


@settings(max_examples=150)
@given(size=st.integers(0, len(DATA) - 1), kind=st.sampled_from(["plain", "gzip", "zstd"]))
def test_a_truncated_file_is_printed_up_to_its_last_whole_transaction(size: int, kind: str) -> None:
    data = {"plain": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}[kind](DATA[:size])
    told = binlog("-", stdin=data)
    lines = [line.replace(b'"mysql-9.7.000001:', b'"-:') for line, end in zip(LINES, ENDS, strict=True) if end <= size]
    if told.code == 0:
        assert told.out == b"".join(lines)
        assert between_transactions(size)
    else:
        refused(told, "-", lines)
        assert not between_transactions(size)


def between_transactions(size: int) -> bool:
    starts = {int(place) for place in re.findall(r"(\d+)", " ".join(map(str, PREFACE)))}
    return size in starts or size in ENDS


def preface() -> list[int]:
    """Where the events before the first transaction end."""
    ends, at = [], 4
    while DATA[at + 4] in {15, 35}:
        at += int.from_bytes(DATA[at + 9 : at + 13], "little")
        ends.append(at)
    return ends


PREFACE = preface()


@settings(max_examples=200)
@given(bit=st.integers(0, 8 * len(DATA) - 1))
def test_a_flipped_bit_is_damage_at_its_event(bit: int) -> None:
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    told = binlog("-", stdin=bytes(data))
    if bit == 8 * (4 + 17):  # the flag that says the file is in use: not in its checksum
        assert told.code == 0
        return
    lines = [
        line.replace(b'"mysql-9.7.000001:', b'"-:') for line, end in zip(LINES, ENDS, strict=True) if end <= bit // 8
    ]
    refused(told, "-", lines)


@settings(max_examples=60)
@given(st.sets(st.integers(0, len(DATA) - 1), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_salvage_prints_every_undamaged_transaction(at: set[int], draw: random.Random) -> None:
    data = bytearray(DATA)
    for place in at:
        data[place] ^= draw.randrange(1, 256)
    damaged = [place for place in at if data[place] != DATA[place]]  # the same place twice may be whole again
    told = binlog("-", "--salvage", stdin=bytes(data))
    lines = [line.replace(b'"mysql-9.7.000001:', b'"-:') for line in LINES]
    starts = [PREFACE[-1], *ENDS[:-1]]
    intact = [
        re.sub(rb'^\{"seqno":\d+', b"", line)
        for line, start, end in zip(lines, starts, ENDS, strict=True)
        if not any(start <= place < end for place in damaged)
    ]
    printed = [re.sub(rb'^\{"seqno":\d+', b"", line) for line in told.out.splitlines(keepends=True)]
    if bytes(data) != DATA:
        assert printed == intact
        assert told.code in ({0, 5} if set(at) == {21} else {5})


def file_of(folder: Path, data: bytes, name: str = "binlog.000001") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_wrong_checksum_is_damage_and_salvage_resumes_after_it(tmp_path: Path) -> None:
    log = LogWriter()
    first, second, third, end = transactions(log, 1, 2, 3)
    data = bytearray(log.data)
    data[second + 30] ^= 1
    path = file_of(tmp_path, bytes(data))
    behind = second + int.from_bytes(data[second + 9 : second + 13], "little")
    stored = bytes(data[behind - 4 : behind])[::-1].hex()
    told = binlog(path)
    assert told.rows == [1]
    assert told.err.endswith(at(path, second, "GTID(33)", checksum=stored))
    assert (first, end) == (len(LogWriter().data), len(data))

    saved = binlog(path, "--salvage")
    assert saved.rows == [1, 3]
    assert [one["seqno"] for one in saved.objects] == [0, 1]
    assert saved.objects[1]["event_id"].startswith(f"binlog.000001:{end:016};")
    assert saved.code == 5
    left_out, summary = saved.err.splitlines(keepends=True)
    assert f" {third - second} bytes, from {second} to {third}: " in left_out
    assert left_out.endswith(at(path, second, "GTID(33)", checksum=stored))
    assert summary.startswith(f"thl: {third - second} bytes ")
    assert summary.endswith("[printed=2]\n")


def test_zeros_at_the_end_are_damage(tmp_path: Path) -> None:
    log = LogWriter()
    *_, end = transactions(log, 1)
    path = file_of(tmp_path, log.data + bytes(5000))
    told = binlog(path)
    assert told.rows == [1]
    assert told.err.endswith(at(path, end))
    saved = binlog(path, "--salvage")
    assert (saved.rows, saved.code) == ([1], 5)
    assert "left out 5000 bytes" in saved.err


@pytest.mark.parametrize("length", [0, 5, 18, 2**31, 2**32 - 1])
def test_an_impossible_length_is_damage(tmp_path: Path, length: int) -> None:
    log = LogWriter()
    _, second, third, _ = transactions(log, 1, 2, 3)
    data = log.data[: second + 9] + struct.pack("<I", length) + log.data[second + 13 :]
    path = file_of(tmp_path, data)
    told = binlog(path)
    assert told.rows == [1]
    assert told.err.endswith(at(path, second, "GTID(33)", size=length))
    saved = binlog(path, "--salvage")
    assert (saved.rows, saved.code) == ([1, 3], 5)
    assert f"from {second} to {third}" in saved.err


def test_a_length_beyond_the_end_is_damage(tmp_path: Path) -> None:
    log = LogWriter()
    _, second, _, end = transactions(log, 1, 2, 3)
    data = log.data[: second + 9] + struct.pack("<I", 100_000) + log.data[second + 13 :]
    path = file_of(tmp_path, data)
    told = binlog(path)
    assert told.rows == [1]
    assert f"{end - second} of its 100000 bytes" in told.err
    assert f"[file={path} pos={second}" in told.err
    assert binlog(path, "--salvage").rows == [1, 3]


def test_a_transaction_without_an_end_is_damage(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    gtid(log, 2)
    log.begin()
    log.table_map([INT])
    log.rows(30, 1, b"".join(image([struct.pack("<i", number)]) for number in range(500_000)))
    path = file_of(tmp_path, log.data)
    told = binlog(path)
    assert told.rows == [1]
    assert told.err.endswith(at(path, len(log.data)))
    assert (binlog(path, "--salvage").rows, binlog(path, "--salvage").code) == ([1], 5)


def test_damage_within_a_large_transaction_prints_none_of_it(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    gtid(log, 2)
    log.begin()
    log.table_map([INT])
    for start in range(0, 1_000_000, 100_000):
        log.rows(30, 1, b"".join(image([struct.pack("<i", start + number)]) for number in range(100_000)))
    damaged = len(log.data) - 1000
    log.commit()
    transactions(log, 3)
    data = bytearray(log.data)
    data[damaged] ^= 4
    path = file_of(tmp_path, bytes(data))
    told = binlog(path)
    assert (told.rows, told.code) == ([1], 5)
    assert "event=WRITE_ROWS(30)" in told.err
    assert binlog(path, "--salvage").rows == [1, 3]


def test_salvage_of_a_log_without_gtids_resumes_after_the_next_commit(tmp_path: Path) -> None:
    log = LogWriter()
    _, second, third, fourth, _ = transactions(log, 1, 2, 3, 4, gtids=False)
    data = bytearray(log.data)
    data[second + 30] ^= 1
    path = file_of(tmp_path, bytes(data))
    assert binlog(path).rows == [1]
    assert binlog(path, "--salvage").rows == [1, 3, 4]
    data[third - 1] ^= 1  # the checksum of the end of the second
    path.write_bytes(data)
    told = binlog(path, "--salvage")
    assert told.rows == [1, 4]
    assert f"from {second} to {fourth}" in told.err


def test_salvage_works_without_checksums(tmp_path: Path) -> None:
    log = LogWriter(checksum=False)
    _, second, third, _ = transactions(log, 1, 2, 3)
    data = log.data[: second + 9] + struct.pack("<I", 7) + log.data[second + 13 :]
    path = file_of(tmp_path, data)
    assert binlog(path).rows == [1]
    told = binlog(path, "--salvage")
    assert told.rows == [1, 3]
    assert f"from {second} to {third}" in told.err


@pytest.mark.parametrize("checksum", [True, False])
def test_an_unclosed_log_is_printed_without_damage(tmp_path: Path, checksum: bool) -> None:
    """As a crash leaves it: marked as in use, and with half an event at its end."""
    log = LogWriter(checksum=checksum)
    _, second, third, _ = transactions(log, 1, 2, 3)
    data = bytearray(log.data[: third + 40])
    data[4 + 17] |= 1
    path = file_of(tmp_path, bytes(data))
    assert binlog(path).rows == [1, 2]
    data[second + 9] = 3
    path.write_bytes(data)
    assert (binlog(path).rows, binlog(path, "--salvage").rows) == ([1], [1])
    path.write_bytes(data + log.data[len(data) :])
    assert binlog(path, "--salvage").rows == [1, 3]


def test_a_damaged_format_description_is_refused(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1, 2)
    data = bytearray(log.data)
    data[30] ^= 1
    path = file_of(tmp_path, bytes(data))
    told = binlog(path)
    assert (told.out, told.code) == (b"", 5)
    assert f"[file={path} pos=4 event=FORMAT_DESCRIPTION(15)" in told.err
    assert binlog(path, "--salvage").rows == [1, 2]


@pytest.mark.parametrize(
    ("data", "code", "fact"),
    [
        (b"", 5, "0"),
        (b"\xfeb", 5, "2"),
        (b"\xfebin", 5, "pos=4"),
        (b"\xfdbin" + bytes(600), 6, "encrypted"),
        (b"CREATE TABLE t (a INT);", 5, "43 52 45 41"),
        (gzip.compress(b"text", mtime=0), 5, "74 65 78 74"),
        (b"\x1f\x8bnot gzip", 5, "decompress"),
        (b"\x28\xb5\x2f\xfdnot zstd", 5, "decompress"),
    ],
)
def test_a_file_that_is_not_a_binary_log_is_refused(tmp_path: Path, data: bytes, code: int, fact: str) -> None:
    path = file_of(tmp_path, data)
    told = binlog(path)
    assert (told.code, told.out) == (code, b"")
    assert fact in told.err
    assert f"[file={path} pos=" in told.err
    saved = binlog(path, "--salvage")
    assert (saved.code, saved.out) == (5, b"")


def test_an_encrypted_mariadb_log_is_refused_with_the_option_to_read_it(tmp_path: Path) -> None:
    """As its `Start_encryption_log_event` is: scheme 1, the key's version, a nonce; what follows is no event."""
    log = LogWriter()
    start = len(log.data)
    log.event(164, b"\1" + struct.pack("<I", 1) + bytes(12))
    path = file_of(tmp_path, log.data + b"encrypted" * 40)
    told = binlog(path)
    assert (told.code, told.rows) == (6, [])
    assert f"[file={path} pos={start} event=MARIADB_START_ENCRYPTION(164)]" in told.err
    assert "--read-from-remote-server" in told.err


def test_bytes_after_the_end_of_a_log_are_damage(tmp_path: Path) -> None:
    log = LogWriter()
    transactions(log, 1)
    log.event(4, struct.pack("<Q", 4) + b"binlog.000002")
    path = file_of(tmp_path, log.data + b"rubbish that is long enough for a header")
    told = binlog(path)
    assert (told.rows, told.code) == ([1], 5)
    assert f"file={path} pos={len(log.data)}" in told.err


def test_files_after_a_damaged_one_are_read_only_with_salvage(tmp_path: Path) -> None:
    first, second = LogWriter(), LogWriter()
    transactions(first, 1, 2)
    transactions(second, 3)
    paths = [file_of(tmp_path, first.data[:-5]), file_of(tmp_path, second.data, "binlog.000002")]
    assert (binlog(*paths).rows, binlog(*paths).code) == ([1], 5)
    assert (binlog(*paths, "--salvage").rows, binlog(*paths, "--salvage").code) == ([1, 3], 5)


@pytest.mark.parametrize("layout", ["json", "tungsten"])
def test_salvage_works_on_a_compressed_file(tmp_path: Path, layout: str) -> None:
    log = LogWriter()
    _, second, _, _ = transactions(log, 1, 2, 3)
    data = bytearray(log.data)
    data[second + 30] ^= 1
    path = file_of(tmp_path, gzip.compress(data, mtime=0), "binlog.000001.gz")
    told = binlog(path, "--salvage", "--format", layout)
    assert told.code == 5
    expected = file_of(tmp_path, bytes(data))
    assert told.out == binlog(expected, "--salvage", "--format", layout).out != b""


@settings(max_examples=150)
@given(st.data(), st.sampled_from(["json", "tungsten"]), st.booleans())
def test_damage_under_a_right_checksum_is_data_or_a_named_error(
    data: st.DataObject, layout: str, salvage: bool
) -> None:
    """What no checksum notices is a value like any other, or our error: never a defect."""
    start, end, _ = data.draw(st.sampled_from(events(DATA)))
    log = bytearray(DATA)
    for at in data.draw(st.lists(st.integers(start + 19, end - 5), min_size=1, max_size=4)):
        log[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFA, 0xFC, 0xFE, 0xFF]))
    told = binlog("-", "--format", layout, *["--salvage"] * salvage, stdin=resealed(bytes(log), start, end))
    assert told.code in {0, 5, 6}
    if told.code == 0:
        assert told.err == ""
    if layout == "json":
        assert all(one["changes"] for one in told.objects)
