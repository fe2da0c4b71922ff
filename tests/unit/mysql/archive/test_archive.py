"""Raw events, and an archive as a folder of files, without a server."""

from __future__ import annotations

import gzip
import os
import random
import struct
import uuid
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connector.errors import ConfigError, CorruptBinlog, HistoriesDiffer, Unsupported
from connector.log.gtid.mysql import GtidSet
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import AfterGtids
from connector.log.transaction.source_position import SourcePosition
from connector.log.transaction.xa import Logged
from connector.mysql.archive.archive import Archive, ArchiveWriter
from connector.mysql.archive.archived_log import covering, previous_gtids
from connector.mysql.binlog.frames import EventFrames, PacketFrames
from connector.mysql.binlog.log_files import LogBytes, LogFile
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.binlog.reader import BinlogReader
from tests.support.binlog import ALL, row_changes
from tests.support.binlog_command import INT, UUID, gtid
from tests.support.binlog_writer import LogWriter, image
from tests.support.old_log import OldLog

LOG = Path("tests/testdata/binlog/mysql-9.7.000001")
ARTIFICIAL = 0x20


class Parts:
    """Gives bytes in parts of random sizes."""

    def __init__(self, data: bytes, seed: int) -> None:
        self._data = data
        self._random = random.Random(seed)

    def receive(self, into: memoryview, timeout: float) -> int:
        del timeout
        size = min(self._random.randint(1, 3000), len(into))
        part, self._data = self._data[:size], self._data[size:]
        into[: len(part)] = part
        return len(part)

    def close(self) -> None:
        pass


def packets(events: list[bytes]) -> bytes:
    return b"".join(
        (len(event) + 1).to_bytes(3, "little") + bytes([number % 256, 0]) + event
        for number, event in enumerate(events, 1)
    )


def rotate(name: str, place: int) -> bytes:
    body = struct.pack("<Q", place) + name.encode()
    event = struct.pack("<IBIIIH", 0, 4, 1, 19 + len(body) + 4, 0, ARTIFICIAL) + body
    return event + struct.pack("<I", zlib.crc32(event))


def events_of(data: bytes) -> list[bytes]:
    found, at = [], 4
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        found.append(data[at : at + size])
        at += size
    return found


def drained(data: bytes, seed: int, file: str = "", offset: int = 4) -> list[tuple[str, bytes]]:
    frames = PacketFrames()
    raw = RawEvents(frames, file, offset)
    source, found = Parts(data, seed), []
    while frames.receive(source, 0):
        found += raw.drain()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_dump_equals_the_file_without_artificial_events(seed: int) -> None:
    data = LOG.read_bytes()
    events = events_of(data)
    heartbeat = struct.pack("<IBIIIH", 0, 27, 1, 19 + 4 + 4, 200, 0) + b"name"
    heartbeat += struct.pack("<I", zlib.crc32(heartbeat))
    sent = [rotate("log.000007", 4), *events[:3], heartbeat, *events[3:], rotate("log.000008", 4)]
    found = drained(packets(sent), seed)
    assert b"".join(part for name, part in found if name == "log.000007") == data[4:]
    assert found[0] == ("log.000007", b"")
    assert found[-1] == ("log.000008", b"")


def test_dump_from_inside_a_file_omits_the_format_description() -> None:
    data = LOG.read_bytes()
    events = events_of(data)
    start = 4 + len(events[0]) + len(events[1])
    repeated = bytearray(events[0])
    repeated[13:17] = bytes(4)
    repeated[-4:] = struct.pack("<I", zlib.crc32(repeated[:-4]))
    sent = [rotate("log.000007", start), bytes(repeated), *events[2:]]
    assert b"".join(part for _, part in drained(packets(sent), 1, "log.000007", start)) == data[start:]
    with pytest.raises(CorruptBinlog) as raised:
        drained(packets(sent), 1, "log.000007", start + 1)
    assert raised.value.where == {"file": "log.000007", "pos": start + 1, "event": "ROTATE(4)"}


def test_jump_and_wrong_checksum_end_after_the_valid_events() -> None:
    events = events_of(LOG.read_bytes())
    flipped = bytearray(events[4])
    flipped[-1] ^= 1
    for wrong, where in (
        (bytes(flipped), {"event": "GTID(33)", "checksum": flipped[-4:][::-1].hex()}),
        (events[5], {"event": "QUERY(2)", "ends": 762, "size": 340}),
    ):
        frames = PacketFrames()
        raw = RawEvents(frames)
        source = Parts(packets([rotate("log.000007", 4), *events[:4], wrong]), 3)
        found: list[tuple[str, bytes]] = []
        with pytest.raises(CorruptBinlog) as raised:
            for _ in range(100):
                frames.receive(source, 0)
                found += raw.drain()
        assert raised.value.where == {"file": "log.000007", "pos": 343, **where}
        assert b"".join(part for _, part in found) == b"".join(events[:4])
        with pytest.raises(CorruptBinlog) as again:
            raw.drain()
        assert again.value.where == raised.value.where


def archive(folder: Path, *names: str) -> Archive:
    for name in names:
        (folder / name).write_bytes(LOG.read_bytes())
    return Archive(folder)


def test_empty_archive_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "source.json").write_text('{"server_uuid": "x"}')
    (tmp_path / "log.000001.part.new").write_bytes(b"")
    kept = Archive(tmp_path)
    assert (kept.files(), kept.resume(), kept.owner) == ([], None, "x")
    with pytest.raises(ConfigError) as unread:
        Archive(tmp_path / "none").files()
    assert unread.value.where["folder"] == tmp_path / "none"
    (tmp_path / "source.json").write_text("[]")
    with pytest.raises(ConfigError) as unnamed:
        _ = kept.owner
    assert unnamed.value.where["file"] == tmp_path / "source.json"


def test_archiving_continues_after_the_newest_file(tmp_path: Path) -> None:
    kept = archive(tmp_path, "log.999998", "log.999999")
    (tmp_path / "log.999999.part").write_bytes(b"stale")
    assert kept.resume() == SourcePosition("log.1000000", 4)
    for number in (1_000_000, 1_000_001):
        (tmp_path / f"log.{number}.part").write_bytes(LOG.read_bytes()[:4])
    assert kept.resume() == SourcePosition("log.1000001", 4)


@pytest.mark.parametrize("lost", range(1, 400, 37))
def test_incomplete_last_event_after_a_crash_is_cut_off(tmp_path: Path, lost: int) -> None:
    data = LOG.read_bytes()
    part = tmp_path / "log.000002.part"
    part.write_bytes(data[:-lost])
    kept = archive(tmp_path, "log.000001")
    place = kept.resume()
    assert place is not None
    ends = {4}
    for event in events_of(data):
        ends.add(max(ends) + len(event))
    assert place == SourcePosition("log.000002", max(end for end in ends if end <= len(data) - lost))
    assert part.read_bytes() == data[: place.offset]


def test_gtids_choose_the_newest_file_that_lacks_nothing(tmp_path: Path) -> None:
    kept = archive(tmp_path, "log.000001")
    file = LogFile.at(tmp_path / "log.000001")
    before = previous_gtids(file)
    assert before is not None
    (tmp_path / "log.000002.gz").write_bytes(gzip.compress(renamed(LOG.read_bytes())))
    later = previous_gtids(LogFile.at(tmp_path / "log.000002.gz"))
    assert later == GtidSet.parse(KNOWN)
    assert covering(kept, AfterGtids(str(before | later))) == LogFile.at(tmp_path / "log.000002.gz")
    assert covering(kept, AfterGtids(str(before))) == file
    assert covering(kept, SourcePosition("log.000002", 500)) == LogFile.at(tmp_path / "log.000002.gz")
    assert covering(kept, SourcePosition("log.000003", 4)) is None
    (tmp_path / "log.000001").unlink()
    assert covering(kept, AfterGtids(str(before))) is None


KNOWN = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"


def renamed(data: bytes) -> bytes:
    """The beginning of a log before which there were other transactions."""
    first = events_of(data)[0]
    raw = bytes.fromhex(KNOWN[:36].replace("-", ""))
    body = struct.pack("<Q16sQQQ", 1, raw, 1, 1, 8)
    size = 19 + len(body) + 4
    event = struct.pack("<IBIIIH", 0, 35, 1, size, 4 + len(first) + size, 0) + body
    return data[:4] + first + event + struct.pack("<I", zlib.crc32(event))


def test_file_that_ends_before_its_second_event_is_refused(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    (tmp_path / "log.000001").write_bytes(data[: 4 + len(events_of(data)[0]) + 5])
    with pytest.raises(CorruptBinlog):
        previous_gtids(LogFile.at(tmp_path / "log.000001"))


def test_file_is_read_byte_for_byte(tmp_path: Path) -> None:
    file = archive(tmp_path, "log.000001").files()[0]
    frames = EventFrames()
    raw = RawEvents(frames, file.name)
    with closing(LogBytes(file)) as source:
        found = []
        while frames.receive(source, 0):
            found += raw.drain()
    assert b"".join(part for _, part in found) == LOG.read_bytes()[4:]
    assert raw.offset == LOG.stat().st_size


def test_logs_without_checksums_or_gtids_are_archived(tmp_path: Path) -> None:
    plain = tmp_path / "log.000001"
    writer = LogWriter(checksum=False)
    writer.begin()
    writer.commit()
    plain.write_bytes(writer.data)
    assert [size for _, size in Archive(tmp_path).verify()] == [len(writer.data)]
    for version in (1, 3):
        old = OldLog(version)
        old.query(b"DROP TABLE t")
        plain.write_bytes(old.data)
        assert previous_gtids(LogFile.at(plain)) is None


def with_gtids(*numbers: int | None) -> LogWriter:
    """A row each, of a table whose columns the log names from the third transaction on; None: without a GTID."""
    log = LogWriter()
    for place, number in enumerate(numbers):
        if number is None:
            log.event(34, b"\1" + bytes(24) + b"\2" + bytes(16))
        else:
            gtid(log, number)
        log.begin()
        log.table_map([INT], metadata="FULL" if place >= 2 else "MINIMAL")
        log.rows(30, 1, image([struct.pack("<i", place)]))
        log.commit()
    return log


def read_known(log: LogWriter, folder: Path, known: str | None) -> list[Logged]:
    path = folder / "log.000001"
    path.write_bytes(log.data)
    reader = BinlogReader(
        LogBytes(LogFile.at(path)),
        EventFrames(),
        filters=ALL,
        service="test",
        batch_bytes=1 << 20,
        file=path.name,
        known=None if known is None else parse_gtids(known),
    )
    found: list[Item] = []
    with closing(reader):
        while not reader.ended:
            found += reader.read()
    return [item for item in found if not isinstance(item, Redefined)]


def test_rows_of_known_transactions_need_no_names(tmp_path: Path) -> None:
    server = str(uuid.UUID(bytes=UUID))
    found = read_known(with_gtids(1, 2, 3, 4), tmp_path, f"{server}:1-2:4")
    assert [item.gtid if isinstance(item, PositionAdvance) else None for item in found] == [
        f"{server}:1", f"{server}:2", None, f"{server}:4",
    ]  # fmt: skip
    assert [after for _, _, after in row_changes(found, "t")] == [[2]]
    for known in (None, f"{server}:2-4"):
        with pytest.raises(Unsupported) as refused:
            read_known(with_gtids(1, 2, 3), tmp_path, known)
        assert "binlog_row_metadata" in refused.value.hint


def test_transaction_without_gtid_is_never_known(tmp_path: Path) -> None:
    """It comes behind one that is, on the same table."""
    server = str(uuid.UUID(bytes=UUID))
    found = read_known(with_gtids(1, 2, 3, None), tmp_path, f"{server}:1-3")
    assert [after for _, _, after in row_changes(found, "t")] == [[3]]


def test_mariadb_gtid_is_known_by_its_number_in_the_domain(tmp_path: Path) -> None:
    log = LogWriter(server=b"11.4.5-MariaDB")
    for number in (1, 2):
        log.event(162, struct.pack("<QIB", number, 0, 0) + bytes(6))
        log.table_map([INT], metadata="FULL" if number == 2 else "NONE")
        log.rows(30, 1, image([struct.pack("<i", number)]))
        log.commit()
    found = read_known(log, tmp_path, "0-1-1")
    assert [after for _, _, after in row_changes(found, "t")] == [[2]]


def test_missing_file_and_foreign_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        archive(tmp_path, "log.000001", "log.000003").files()
    assert raised.value.where["between"] == "log.000001 log.000003"


def test_an_archive_belongs_to_one_server_and_one_writer(tmp_path: Path) -> None:
    kept = Archive(tmp_path / "new")
    with kept.locked():
        kept.belong("one")
        kept.belong("one")
        with pytest.raises(HistoriesDiffer) as raised:
            kept.belong("other")
        assert (raised.value.where["archive"], raised.value.where["source"]) == ("one", "other")
        with pytest.raises(ConfigError) as refused, Archive(tmp_path / "new").locked():
            pass
        assert refused.value.where == {"folder": tmp_path / "new"}
    with Archive(tmp_path / "new").locked():
        assert kept.owner == "one"


@pytest.mark.parametrize("lost", [1, 30])
def test_complete_file_that_ends_inside_an_event_is_refused(tmp_path: Path, lost: int) -> None:
    (tmp_path / "log.000001").write_bytes(LOG.read_bytes()[:-lost])
    with pytest.raises(CorruptBinlog) as raised:
        list(Archive(tmp_path).verify())
    assert str(raised.value.where["file"]) == str(tmp_path / "log.000001")


def test_file_gets_its_name_when_the_server_has_rotated(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    writer = ArchiveWriter(Archive(tmp_path))
    assert writer.accept([("log.000001", b""), ("log.000001", data[4:100])]) == []
    writer.close()
    assert (tmp_path / "log.000001.part").read_bytes() == data[:100]
    writer = ArchiveWriter(Archive(tmp_path))  # which goes on behind what is there
    whole = writer.accept([("log.000001", data[100:]), ("log.000002", b""), ("log.000003", b"")])
    assert whole == ["log.000001", "log.000002"]
    writer.close()
    names = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert names == {"log.000001": data, "log.000002": data[:4], "log.000003.part": data[:4]}


def test_file_is_synced_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("sync"), sync(descriptor)))
    monkeypatch.setattr(Path, "rename", lambda path, to: (done.append(Path(to).name), rename(path, to))[1])
    writer = ArchiveWriter(Archive(tmp_path))
    writer.accept([("log.000001", b"x")])
    done.clear()
    writer.accept([("log.000002", b"")])
    assert done[:3] == ["sync", "log.000001", "sync"]
    writer.close()


@pytest.mark.parametrize(
    ("wrong", "kind", "jump"),
    [
        (lambda events: [events[0], events[1] + b"\0"], "PREVIOUS_GTIDS(35)", {}),
        (lambda events: [events[1]], "PREVIOUS_GTIDS(35)", {}),
        (lambda events: [events[0], events[2]], "GTID(33)", {"ends": 235, "size": 77}),
        (
            lambda events: [events[0], events[1][:-1] + b"\0"],
            "PREVIOUS_GTIDS(35)",
            {"checksum": "00"},
        ),
    ],
    ids=["length", "format", "place", "checksum"],
)
def test_invalid_dump_event_is_refused_with_its_position(
    wrong: Callable[[list[bytes]], list[bytes]], kind: str, jump: dict[str, object]
) -> None:
    sent = wrong(events_of(LOG.read_bytes()))
    frames = PacketFrames()
    raw = RawEvents(frames)
    source = Parts(packets([rotate("log.000007", 4), *sent]), 3)
    with pytest.raises(CorruptBinlog) as raised:
        for _ in range(100):
            frames.receive(source, 0)
            raw.drain()
    place = 4 + sum(map(len, sent[:-1]))
    if "checksum" in jump:
        jump = {"checksum": sent[-1][-4:][::-1].hex()}
    assert raised.value.where == {"file": "log.000007", "pos": place, "event": kind, **jump}


def sealed(event: bytes) -> bytes:
    return event[:-4] + struct.pack("<I", zlib.crc32(event[:-4]))


def test_heartbeat_v2_and_artificial_events_are_not_archived() -> None:
    data = LOG.read_bytes()
    first, second, *events = events_of(data)
    beat = sealed(struct.pack("<IBIIIH", 0, 41, 1, 19 + 2 + 4, 200, 0) + b"\0\0" + bytes(4))
    made = sealed(second[:17] + struct.pack("<H", ARTIFICIAL) + second[19:])
    sent = [rotate("log.000007", 4), first, beat, second, made, *events]
    found = drained(packets(sent), 1)
    assert b"".join(part for _, part in found) == data[4:]


def test_file_in_use_is_archived_unchanged() -> None:
    """Its checksum is that of the format description without the flag."""
    data = bytearray(LOG.read_bytes())
    data[4 + 17] |= 1
    found = drained(packets([rotate("log.000007", 4), *events_of(bytes(data))]), 1)
    assert b"".join(part for _, part in found) == data[4:]


def test_mariadb_events_without_positions_are_archived() -> None:
    log = LogWriter(server=b"11.4.5-MariaDB")
    log.begin()
    log.event(160, b"INSERT", log_pos=0)
    log.commit()
    found = drained(packets([rotate("log.000007", 4), *events_of(log.data)]), 1)
    assert b"".join(part for _, part in found) == log.data[4:]


def test_archive_files_are_owner_only(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    with archive.locked():
        archive.belong("5b37")
        writer = ArchiveWriter(archive)
        data = LOG.read_bytes()
        writer.accept(drained(packets([rotate("log.000007", 4), *events_of(data), rotate("log.000008", 4)]), 1))
        writer.accept([("log.000008", b"")])
        writer.close()
    modes = {path.name: path.stat().st_mode & 0o7777 for path in archive.folder.iterdir()}
    assert modes == dict.fromkeys(("source.json", "log.000007", "log.000008.part"), 0o600)
    assert archive.folder.stat().st_mode & 0o7777 == 0o700
