"""Readers of a relay take nothing for whole that is not, wherever a checksum is right."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import pytest

from connector.clock import SystemClock
from connector.errors import ConfigError, LogDamaged
from connector.log.format.checked import LATEST
from connector.log.ids import Epoch, Seqno
from connector.relay import folder as folder_module
from connector.relay.folder import Lock, locked, relay_files
from connector.relay.frames import FILE, FileHead, file_head_record, trapped_record
from connector.relay.reader import RelayReader, TrappedEvents, WholeEvent
from connector.relay.record import add_record, framed
from tests.fuzz.relay_files import changed_files, read_relay, relay_seeds
from tests.support.clock import Slept
from tests.support.fragments import encoded, record, scanned
from tests.support.relay import seqnos
from tests.unit.applier.test_core import LOG_ID, insert

HEAD = FileHead(LOG_ID, "shop", Seqno(9), Epoch(1), False, None)
NAME = "thl.data.0000000001"


def fragment(seqno: int, fragno: int = 0, *, last: bool = True, epoch: int = 2) -> bytes:
    changes = [insert(100 * seqno + fragno)]
    fields = record(seqno, changes, fragno=fragno, last_frag=last, epoch=epoch, rows=fragno + 1)
    (message,) = scanned([encoded(fields)], offset=seqno)
    found = bytearray()
    add_record(found, message)
    return bytes(found)


def with_number(place: int, size: int, number: int) -> bytes:
    """Event 11 with another number at a place of its header."""
    whole = fragment(11)
    end = 9 + int.from_bytes(whole[5:9], "big")
    head, data = bytearray(whole[9:end]), whole[end + 4 : -5]
    place %= len(head)
    head[place : place + size] = number.to_bytes(size, "big", signed=True)
    return framed(0, bytes(head), data)


def passed(first: int, last: int) -> bytes:
    return trapped_record(Seqno(first), Seqno(last))


def write(folder: Path, *records: bytes, head: bytes | None = None, name: str = NAME) -> Path:
    path = folder / name
    path.write_bytes(b"".join([head or file_head_record(HEAD), *records]))
    return path


def test_events_fragments_epochs_and_what_is_passed_over_are_read_in_order(tmp_path: Path) -> None:
    pieces = [fragment(13, 0, last=False), fragment(13, 1, last=False), fragment(13, 2)]
    write(tmp_path, fragment(10), passed(11, 12), *pieces, fragment(14, epoch=3), passed(15, 15))
    found = list(RelayReader(tmp_path).events(Seqno(10)))
    assert [(one.first, one.last) for one in found if isinstance(one, TrappedEvents)] == [(11, 12), (15, 15)]
    assert seqnos(tmp_path) == [10, 13, 14]
    assert RelayReader(tmp_path).newest == 15


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([fragment(12)], "fragment 0 of event 11 does not come next"),
        ([fragment(10)], "fragment 0 of event 11 does not come next"),
        ([fragment(11, 1)], "fragment 0 of event 11 does not come next"),
        ([fragment(11, last=False), fragment(11, 2)], "fragment 1 of event 11 does not come next"),
        ([fragment(11, last=False), fragment(11)], "fragment 1 of event 11 does not come next"),
        ([fragment(11, last=False), fragment(12, 1)], "fragment 1 of event 11 does not come next"),
        ([fragment(11, epoch=1)], "event 11 is of epoch 1 after epoch 2"),
        ([fragment(11, last=False), fragment(11, 1, epoch=3)], "event 11 is of epoch 3 after epoch 2"),
        ([passed(12, 13)], "event 11 does not come next"),
        ([passed(10, 13)], "event 11 does not come next"),
        ([passed(11, 10)], "event 11 does not come next"),
        ([fragment(11, last=False), passed(11, 13)], "a record of the type 2 is out of place"),
        ([file_head_record(HEAD)], "a record of the type 1 is out of place"),
        ([framed(7, b"")], "a record of the type 7 is out of place"),
        ([framed(0, b"short")], "a fragment's header is wrong"),
        ([framed(2, b"short")], "a record's header is wrong"),
        *(
            ([with_number(place, size, number)], "a fragment's header has impossible numbers")
            for place, size, number in ((8, 4, -1), (-20, 8, -1), (-20, 8, LATEST + 1), (-12, 4, -1), (-8, 8, -1))
        ),
    ],
)
def test_records_out_of_order_are_damage_after_the_events_before(
    tmp_path: Path, records: list[bytes], message: str
) -> None:
    write(tmp_path, fragment(10), *records)
    found = []
    with pytest.raises(LogDamaged, match=message) as caught:
        for one in RelayReader(tmp_path).events(Seqno(10)):
            found.append(one)
    assert [one.last.seqno for one in found if not isinstance(one, TrappedEvents)] == [10]
    assert (caught.value.where["last_whole"], caught.value.where["epoch"]) == (10, 2)


def test_an_event_of_an_earlier_epoch_than_the_one_before_the_file_is_damage(tmp_path: Path) -> None:
    write(tmp_path, fragment(10), head=file_head_record(replace(HEAD, epoch=Epoch(3))))
    with pytest.raises(LogDamaged, match="event 10 is of epoch 2 after epoch 3"):
        seqnos(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"log_id": 7},
        {"log_id": None},
        {"service": ["shop"]},
        {"seqno": "9"},
        {"seqno": 9.0},
        {"seqno": True},
        {"seqno": -2},
        {"seqno": 1 << 63},
        {"epoch": None},
        {"epoch": -1},
        {"epoch": 1 << 63},
        {"continues": 1},
        {"gtid_set": 5},
        {"further": 1},
    ],
)
def test_a_first_record_with_other_values_is_damage(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write(tmp_path, fragment(10), head=framed(FILE, json.dumps(asdict(HEAD) | change).encode()))
    with pytest.raises(LogDamaged, match="the file's first record") as caught:
        RelayReader(tmp_path)
    assert caught.value.where["file"] == str(path)


@pytest.mark.parametrize("head", [fragment(10), framed(FILE, b"{"), framed(FILE, b"[]"), framed(FILE, b"[" * 9999)])
def test_a_file_without_a_first_record_is_damage(tmp_path: Path, head: bytes) -> None:
    write(tmp_path, head=head)
    with pytest.raises(LogDamaged, match="the file's first record"):
        RelayReader(tmp_path)


def test_files_of_several_logs_are_refused(tmp_path: Path) -> None:
    write(tmp_path, fragment(10))
    other = replace(HEAD, log_id="0" * 32, seqno=Seqno(10))
    write(tmp_path, head=file_head_record(other), name="thl.data.0000000002")
    with pytest.raises(LogDamaged, match="several logs") as caught:
        RelayReader(tmp_path)
    assert caught.value.where["file"].endswith("thl.data.0000000001")
    assert caught.value.where["newest_file"].endswith("thl.data.0000000002")


def test_events_that_are_missing_name_the_event_to_begin_at(tmp_path: Path) -> None:
    write(tmp_path, fragment(10))
    after = replace(HEAD, seqno=Seqno(14))
    write(tmp_path, fragment(15), head=file_head_record(after), name="thl.data.0000000002")
    with pytest.raises(LogDamaged, match=r"lacks events 0\.\.9") as caught:
        list(RelayReader(tmp_path).events(Seqno(0)))
    assert "begin at event 10 (Start.oldest())" in caught.value.hint
    with pytest.raises(LogDamaged, match=r"lacks events 11\.\.14") as caught:
        list(RelayReader(tmp_path).events(Seqno(10)))
    assert "begin at event 15, or" in caught.value.hint


def test_a_record_that_is_cut_off_is_the_end_while_its_writer_has_the_folder_and_damage_otherwise(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, fragment(10), fragment(11)[:-1])
    with pytest.raises(LogDamaged, match="the file ends within a record"):
        seqnos(tmp_path)
    lock = Lock(tmp_path, SystemClock())
    assert seqnos(tmp_path) == [10]
    path.write_bytes(path.read_bytes()[: -len(fragment(11)) + 3])
    assert seqnos(tmp_path) == [10]

    path.write_bytes(path.read_bytes() + b"\xff" * 99)
    with pytest.raises(LogDamaged):
        seqnos(tmp_path)  # no end: something else than a record
    write(tmp_path, fragment(10), fragment(11)[:-1])
    after = replace(HEAD, seqno=Seqno(11), continues=True)
    write(tmp_path, fragment(12), head=file_head_record(after), name="thl.data.0000000002")
    with pytest.raises(LogDamaged, match="the file ends within a record"):
        seqnos(tmp_path)  # its writer writes to the last file alone
    lock.close()


def test_a_file_that_is_deleted_while_it_is_to_be_read_names_the_retention(tmp_path: Path) -> None:
    path = write(tmp_path, fragment(10))
    relay = RelayReader(tmp_path)
    path.unlink()
    with pytest.raises(LogDamaged, match="lacks events from 10 on") as caught:
        list(relay.events(Seqno(10)))
    assert "relay.retention" in caught.value.hint


def test_a_large_event_is_read_whatever_follows_it_unless_its_file_is_changed_or_deleted(tmp_path: Path) -> None:
    pieces = [fragment(10, n, last=n == 2) for n in range(3)]
    path = write(tmp_path, *pieces, fragment(11)[:-1])
    relay = RelayReader(tmp_path)
    event = next(relay.events(Seqno(10)))
    assert isinstance(event, WholeEvent)
    assert [one.fragment.fragno for one in relay.of_event(event)] == [0, 1, 2]
    write(tmp_path, *pieces[:2], pieces[2][:-1])
    with pytest.raises(LogDamaged, match="within a record"):
        list(relay.of_event(event))
    path.unlink()
    with pytest.raises(LogDamaged, match="lacks events from 10 on"):
        list(relay.of_event(event))


def test_a_file_that_is_deleted_while_the_folder_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path, fragment(10))
    second = replace(HEAD, seqno=Seqno(10), continues=True)
    write(tmp_path, fragment(11), head=file_head_record(second), name="thl.data.0000000002")
    (tmp_path / "thl.data.0000000003").touch()
    (tmp_path / "thl.data.1").write_bytes(b"another file")
    opened = folder_module.open_to_read

    def deleting(path: Path) -> BinaryIO:
        first.unlink(missing_ok=True)
        return opened(path)

    monkeypatch.setattr(folder_module, "open_to_read", deleting)
    assert [(file.number, file.first) for file in relay_files(tmp_path)] == [(2, 11)]


def test_a_file_that_ends_within_its_first_record_is_left_out_at_a_start_if_it_is_the_last_one(tmp_path: Path) -> None:
    write(tmp_path, fragment(10))
    write(tmp_path, head=file_head_record(HEAD)[:-1], name="thl.data.0000000002")
    assert [file.number for file in relay_files(tmp_path, torn=True)] == [1]
    with pytest.raises(LogDamaged, match="within a record"):
        relay_files(tmp_path)
    write(tmp_path, fragment(10), name="thl.data.0000000003")
    with pytest.raises(LogDamaged, match="within a record"):
        relay_files(tmp_path, torn=True)
    write(tmp_path, head=b"\xff" * 99, name="thl.data.0000000002")
    (tmp_path / "thl.data.0000000003").unlink()
    with pytest.raises(LogDamaged, match="no record begins"):
        relay_files(tmp_path, torn=True)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["fifo", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A named pipe would wait for a writer, for ever."""
    write(tmp_path, fragment(10))
    make(tmp_path / "thl.data.0000000002")
    with pytest.raises(ConfigError, match=r"thl\.data\.0000000002 is not a regular file"):
        RelayReader(tmp_path)
    make(tmp_path / folder_module.LOCK)
    assert not locked(tmp_path)


def test_a_folder_is_locked_while_a_process_has_it(tmp_path: Path) -> None:
    assert not locked(tmp_path)
    lock = Lock(tmp_path, SystemClock())
    assert locked(tmp_path)
    lock.close()
    assert not locked(tmp_path)
    assert not locked(tmp_path / "nowhere")


def test_a_reader_that_looks_at_the_lock_delays_a_writer_and_does_not_refuse_it(tmp_path: Path) -> None:
    Lock(tmp_path, SystemClock()).close()
    reader = (tmp_path / folder_module.LOCK).open("rb")
    folder_module.fcntl.flock(reader, folder_module.fcntl.LOCK_SH)

    class Leaving(Slept):
        def sleep(self, seconds: float) -> None:
            reader.close()
            super().sleep(seconds)

    clock = Leaving()
    Lock(tmp_path, clock).close()
    assert 0 < clock.seconds < 1
    held = Lock(tmp_path, SystemClock())
    with pytest.raises(ConfigError, match="another process uses the relay"):
        Lock(tmp_path, Slept())
    held.close()


def test_a_record_whose_lengths_contradict_each_other_is_damage(tmp_path: Path) -> None:
    content = bytearray(fragment(10)[:-4])
    size = 9 + int.from_bytes(content[5:9], "big")  # the place of the message's size
    content[size + 3] ^= 1
    write(tmp_path, bytes(content) + crc32(content).to_bytes(4, "big"))
    with pytest.raises(LogDamaged, match="lengths contradict each other"):
        seqnos(tmp_path)


@pytest.mark.parametrize("files", relay_seeds())
def test_undamaged_files_are_read_by_every_reader(files: list[list[bytes]]) -> None:
    assert list(read_relay([b"".join(records) for records in files])) == []


def test_damaged_files_with_right_checksums_are_read_or_an_error() -> None:
    draw = random.Random(20_261_125)
    seeds = relay_seeds()
    errors = [error for _ in range(60) for error in read_relay(changed_files(draw.choice(seeds), draw))]
    assert len(errors) > 60
    found = {type(error) for error in errors}
    assert {LogDamaged} <= found <= {LogDamaged, ConfigError}  # a damaged ID is that of another log
