"""A task's records on their way to the driver: each where its segment says, in a file that is written over later."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from connector.log.compact.scan import Messages, Scanner
from connector.relay.record import add_records
from connector.relay.spool import RecordSpool, SpooledRecords
from tests.support.fragments import batch, encoded, record
from tests.unit.applier.test_core import insert


def messages(first: int, count: int) -> Messages:
    (found,) = Scanner("t").scan(batch([encoded(record(n, [insert(n)])) for n in range(first, first + count)]))
    assert isinstance(found, Messages)
    return found


def records(of: Messages) -> bytes:
    out = bytearray()
    add_records(out, array("q"), of, 0, len(of))
    return bytes(out)


def stored(folder: Path, of: Messages) -> SpooledRecords:
    """Write messages as a task does, and return them as the driver gets them."""
    with RecordSpool(folder) as spool:
        spool.add_range(0, array("q"), of, 0, len(of))
        records = spool.since(0)
    return records.opened({})


def content(found: SpooledRecords, buffer: int = 1000) -> bytes:
    return b"".join(map(bytes, found.pieces(memoryview(bytearray(buffer)))))


@pytest.mark.parametrize("buffer", [1, 7, 1000, 1 << 20])
def test_records_are_read_in_pieces_of_any_size(tmp_path: Path, buffer: int) -> None:
    sent = messages(0, 10)
    found = stored(tmp_path, sent)
    whole = records(sent)
    assert content(found, buffer) == bytes(found.mapped()) == whole
    some = found.part(5, len(whole) - 9).part(3, 700)
    assert content(some, buffer) == bytes(some.mapped()) == whole[8:705]
    assert len(some) == 697
    assert content(found.part(4, 4)) == bytes(found.part(4, 4).mapped()) == b""


def test_a_file_is_written_over_once_nothing_refers_to_its_records(tmp_path: Path) -> None:
    long, short, other = messages(0, 20), messages(20, 3), messages(30, 4)
    first = stored(tmp_path, long)
    part = first.part(0, len(first))
    (path,) = tmp_path.iterdir()
    inode = path.stat().st_ino
    del first
    second = stored(tmp_path, short)
    assert content(part) == records(long)
    assert len(list(tmp_path.iterdir())) == 2
    del part
    third = stored(tmp_path, other)
    assert sorted(one.stat().st_ino for one in tmp_path.iterdir()).count(inode) == 1
    assert len(list(tmp_path.iterdir())) == 2
    assert (content(second), content(third)) == (records(short), records(other))


def test_a_file_that_is_too_short_is_an_error(tmp_path: Path) -> None:
    found = stored(tmp_path, messages(0, 5))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="too short"):
        content(found)


def test_records_to_which_no_segment_refers_leave_no_file(tmp_path: Path) -> None:
    with RecordSpool(tmp_path) as spool:
        spool.add_range(0, array("q"), messages(0, 3), 0, 3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("again", [False, True])
def test_a_task_that_fails_leaves_no_file(tmp_path: Path, again: bool) -> None:
    """Neither one of its own, nor one that it writes over."""
    if again:
        stored(tmp_path, messages(0, 3))
    with pytest.raises(ZeroDivisionError), RecordSpool(tmp_path) as spool:
        spool.add_range(0, array("q"), messages(0, 3), 0, 3)
        spool.since(0)
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_empty_spool_leaves_no_file(tmp_path: Path) -> None:
    with RecordSpool(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
