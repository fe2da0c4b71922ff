"""What is applied is first in the relay, as it is on Kafka; files end between transactions."""

from __future__ import annotations

import os
import shutil
import stat
from array import array
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.applier import open_commit
from connector.errors import ConfigError, DiskUnavailable, LogDamaged
from connector.log.compact.scan import Scanner
from connector.log.compact.segment import Segment
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import Intent, TargetPosition
from connector.relay import record_appender
from connector.relay.appending import AppendedFile
from connector.relay.folder import LOCK, Owner
from connector.relay.reader import RelayReader
from connector.relay.record import add_record, add_records
from connector.relay.spool import RecordSpool
from connector.relay.writer import RelayWriter
from connector.spark.stream.segment_builder import SegmentBuilder
from connector.spark.stream.task_result import deserialized, serialized
from tests.support.clock import Slept
from tests.support.fragments import batch, change, encoded, marker, record, registered, scanned
from tests.support.memory_target import MemoryTarget
from tests.support.relay import EVER, SMALL, names, seqnos, values, writer
from tests.unit.applier.test_core import LOG_ID, Rig, history, insert, log, table

FIRST = 1  # offset of the first event


@pytest.fixture(params=["messages", "tasks"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the core gets what is read."""
    monkeypatch.setattr(Rig, "tasks", request.param == "tasks")
    return str(request.param)


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[RelayWriter]:
    made = writer(tmp_path / "relay")
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "relay"


def events(first: int, end: int, **fields: object) -> list[bytes]:
    return [encoded(record(n, [insert(n)], **fields)) for n in range(first, end)]


def rig(target: MemoryTarget, relay: RelayWriter, last: int = 99, **more: object) -> Rig:
    return Rig(target, history([0], last), relay=relay, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [encoded, registered])
def test_records_of_a_range_are_those_of_its_messages(made: object) -> None:
    found = Scanner("t").scan(batch([made(record(n, [insert(n)])) for n in range(5)], partition=3, offset=70))  # type: ignore[operator]
    (messages,) = found
    together, ends, single = bytearray(b"before"), array("q"), bytearray(b"before")
    add_records(together, ends, messages, 1, 4)
    for index in range(1, 4):
        add_record(single, messages.message(index))
        assert ends[index - 1] == len(single)
    assert together == single


def test_the_relay_has_the_messages_as_they_are_on_kafka(relay: RelayWriter, folder: Path) -> None:
    sent = events(0, 40)
    made = rig(MemoryTarget(), relay)
    made.accept(table([encoded(marker(1, 0, -1, log_id=LOG_ID)), *sent[:25]]))
    made.accept(table(sent[25:], offset=FIRST + 25))
    assert values(folder) == sent
    found = [one.fragment for one in RelayReader(folder).fragments(Seqno(0))]  # type: ignore[union-attr]
    assert [(one.partition, one.offset) for one in found] == [(0, FIRST + n) for n in range(40)]
    assert {(one.source_id, one.shard, one.epoch) for one in found} == {("db:3306", "shop", 1)}
    assert found[7].event_id == "binlog.000001:0000000000001007;7"
    assert found[7].commit_time == 1_700_000_000_000_007


class Disk:
    """What a power failure leaves of a folder: the files whose names were synced, each as it was synced last."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._content: dict[int, bytes] = {}
        self._names: list[Path] = []
        fdatasync, fsync = os.fdatasync, os.fsync

        def synced(number: int) -> None:
            fdatasync(number)
            self._content[os.fstat(number).st_ino] = Path(f"/proc/self/fd/{number}").read_bytes()

        def folder_synced(number: int) -> None:
            fsync(number)
            assert os.fstat(number).st_ino == folder.stat().st_ino
            self._names = list(folder.iterdir())

        monkeypatch.setattr(os, "fdatasync", synced)
        monkeypatch.setattr(os, "fsync", folder_synced)

    def copy(self) -> Path:
        """Return a folder as the one is after a power failure now."""
        left = self.folder.with_name("left")
        shutil.rmtree(left, ignore_errors=True)
        left.mkdir()
        for path in self._names:
            if path.exists():
                (left / path.name).write_bytes(self._content.get(path.stat().st_ino, b""))
        return left


@pytest.mark.parametrize(("retention", "length"), [(0, 1), (EVER, 1), (EVER, 90_000)])
def test_a_power_failure_after_any_commit_leaves_its_events_in_the_relay(
    folder: Path, monkeypatch: pytest.MonkeyPatch, retention: float, length: int
) -> None:
    """Those of tasks that have stored many bytes are written directly."""
    sent = [encoded(record(n, [change("insert", [(None, [n, str(n) * length])])])) for n in range(40)]
    folder.mkdir(mode=0o700)
    disk = Disk(folder, monkeypatch)
    commits = []

    class Target(MemoryTarget):
        def commit(self, position: TargetPosition, applied: object) -> None:
            found = seqnos(disk.copy())
            assert found[-1] == position.seqno
            assert found == list(range(found[0], found[-1] + 1))
            assert found[0] <= (-1 if self.position is None else self.position.seqno) + 1
            commits.append(position.seqno)
            super().commit(position, applied)  # type: ignore[arg-type]

    relay = writer(folder, retention=retention, size=SMALL * length)
    made = rig(Target(), relay)
    made.accept(table([encoded(marker(1, 0, -1, log_id=LOG_ID)), *sent[:5]]))
    for first in range(5, 40, 5):
        made.accept(table(sent[first : first + 5], offset=FIRST + first))
    relay.close()
    assert not retention or values(folder) == sent
    assert commits[-1] == 39
    assert len(commits) > 5
    assert len(names(folder)) > 2 or not retention or length > 1


def test_the_first_commit_after_a_start_is_in_the_relay_after_a_power_failure_with_the_claims_token(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on in the file of the applier before it."""
    folder.mkdir(mode=0o700)
    disk = Disk(folder, monkeypatch)
    commits = []

    class Target(MemoryTarget):
        def commit(self, position: TargetPosition, applied: object) -> None:
            left = disk.copy()
            assert seqnos(left)[-1] == position.seqno
            assert int((left / LOCK).read_text()) == self.token
            commits.append(position.seqno)
            super().commit(position, applied)  # type: ignore[arg-type]

    target, sent = Target(), events(0, 6)
    for first in range(0, 6, 2):
        relay = writer(folder, retention=EVER, size=1 << 20)
        made = rig(target, relay)
        begin = [encoded(marker(1, 0, -1, log_id=LOG_ID))] if not first else []
        made.accept(table([*begin, *sent[first : first + 2]], offset=first + (FIRST if first else 0)))
        relay.close()
    assert commits[-1] == 5
    assert values(folder) == sent
    assert len(names(folder)) == 1


def test_a_file_ends_only_between_transactions(
    relay: RelayWriter, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 0)
    monkeypatch.setattr(record_appender, "WRITE_BYTES", 64)
    made = rig(MemoryTarget(), relay)
    made.accept(table(log(*(record(n, [insert(n)]) for n in range(20)))))
    fragments = [encoded(record(20, [insert(1000 + n)], fragno=n, last_frag=n == 29, rows=n + 1)) for n in range(30)]
    for n, value in enumerate(fragments):
        made.accept(table([value], offset=FIRST + 20 + n))
    made.accept(table(events(21, 30), offset=FIRST + 50))
    files = RelayReader(folder).files
    assert len(files) > 4
    found = {
        file.name: [one.fragment for one in RelayReader(folder).fragments(Seqno(0)) if one.file == file]
        for file in files
    }  # type: ignore[union-attr]
    assert all(some[0].fragno == 0 and some[-1].last_frag for some in found.values())
    (large,) = [some for some in found.values() if any(one.seqno == 20 for one in some)]
    assert [one.fragno for one in large if one.seqno == 20] == list(range(30))
    for before, after in pairwise(files):
        assert after.head.continues
        assert after.head.seqno == found[before.name][-1].seqno
        size = before.path.stat().st_size
        assert SMALL <= size < SMALL + 1000 or before.name == next(
            name for name, some in found.items() if some is large
        )


def test_files_are_private_and_have_thl_names(relay: RelayWriter, folder: Path) -> None:
    rig(MemoryTarget(), relay).accept(table(log(record(0, [insert(0)]))))
    assert sorted(path.name for path in folder.iterdir()) == ["disklog.lck", "thl.data.0000000001"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_in_which_others_can_put_files_is_refused(tmp_path: Path) -> None:
    """The sticky bit, as of /tmp, keeps them from replacing files, not from adding some."""
    tmp_path.chmod(0o1777)
    with pytest.raises(ConfigError, match="can be written by other users"):
        writer(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_applier_is_refused(relay: RelayWriter, folder: Path) -> None:
    with pytest.raises(ConfigError, match="another process") as caught:
        writer(folder)
    assert "relay.dir" in caught.value.hint
    relay.close()
    writer(folder).close()


def test_committed_files_are_deleted_and_the_newest_stays(folder: Path) -> None:
    relay = writer(folder, retention=0)
    made = rig(MemoryTarget(), relay)
    for first in range(0, 40, 5):
        values_ = log(*(record(n, [insert(n)]) for n in range(5))) if not first else events(first, first + 5)
        made.accept(table(values_, offset=FIRST + first if first else 0))
    relay.close()
    (file,) = RelayReader(folder).files
    assert file.number > 3
    assert seqnos(folder)[-1] == 39


def test_files_stay_for_the_retention(folder: Path) -> None:
    clock = Slept()
    relay = writer(folder, retention=100, clock=clock)
    target = MemoryTarget()
    made = rig(target, relay)
    made.accept(table(log(*(record(n, [insert(n)]) for n in range(40)))))
    clock.seconds = max(path.stat().st_mtime for path in folder.iterdir()) + 1
    made.accept(table(events(40, 41), offset=FIRST + 40))
    assert len(names(folder)) > 3
    clock.seconds += 100
    made.accept(table(events(41, 42), offset=FIRST + 41))
    relay.close()
    assert len(names(folder)) == 1


def test_what_an_intent_needs_is_kept(folder: Path) -> None:
    relay = writer(folder, retention=0)

    class Target(MemoryTarget):
        def commit(self, position: TargetPosition, applied: object) -> None:
            raise KeyboardInterrupt

    target = Target()
    made = rig(target, relay)
    with pytest.raises(KeyboardInterrupt):
        made.accept(table(log(*(record(n, [insert(n)]) for n in range(40)))))
    kept = names(folder)
    relay.close()
    intent = Intent(
        log_id=LOG_ID, first=Seqno(0), last=Seqno(39), epoch=Epoch(1), writers=2, hash_version=1, undivided=frozenset()
    )
    again = writer(folder, retention=0)
    again.begin(TargetPosition(service="shop", intent=intent), history([0], 99), "", Owner(2))
    again.close()
    assert names(folder) == kept
    assert seqnos(folder) == list(range(40))


def test_events_that_the_target_lacks_are_written_again(folder: Path) -> None:
    target = MemoryTarget()
    relay = writer(folder)
    rig(target, relay).accept(table(log(*(record(n, [insert(n)]) for n in range(10)))))
    at_nine = target.position
    rig(target, relay).accept(table(events(10, 20), offset=FIRST + 10))
    target.position = at_nine
    made = Rig(target, history([0, 10], 99), relay=relay)
    assert seqnos(folder) == list(range(10))
    others = [encoded(record(n, [insert(500 + n)], epoch=2)) for n in range(10, 15)]
    made.accept(table([encoded(marker(2, 10, 9, log_id=LOG_ID)), *others], offset=FIRST + 30))
    relay.close()
    assert values(folder, 10) == others


@pytest.mark.parametrize("retention", [0, EVER])
def test_a_rewound_target_finds_its_events_once(folder: Path, retention: float) -> None:
    target = MemoryTarget()
    relay = writer(folder, retention=retention)
    sent = events(0, 40)
    rig(target, relay).accept(table([encoded(marker(1, 0, -1, log_id=LOG_ID)), *sent]))
    rig(target, relay).accept(table(events(40, 41), offset=FIRST + 40))
    assert target.position is not None
    target.position = replace(
        target.position, seqno=Seqno(9), rewound_from=Seqno(40), consistent=False, offsets={0: FIRST + 10}
    )
    made = rig(target, relay)
    made.accept(table([*sent[10:], *events(40, 45)], offset=FIRST + 10))
    relay.close()
    found = seqnos(folder)
    assert found == list(range(found[0], 45))
    assert found[0] == 0 or not retention


@pytest.mark.parametrize("buffer", [64, 1000, 1 << 20])
def test_an_event_that_is_given_up_is_cut_off(
    relay: RelayWriter, folder: Path, monkeypatch: pytest.MonkeyPatch, buffer: int
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 0)
    monkeypatch.setattr(record_appender, "WRITE_BYTES", buffer)
    made = Rig(MemoryTarget(), history([0], 9), relay=relay)
    made.accept(table(log(*(record(n, [insert(n)]) for n in range(2)))))
    void = [encoded(record(2, [insert(7 + n)], fragno=n, last_frag=False, rows=n + 1)) for n in range(3)]
    for n, value in enumerate(void):
        made.accept(table([value], offset=FIRST + 2 + n))
    whole = [encoded(record(2, [insert(2)], epoch=2)), *events(3, 5, epoch=2)]
    made.accept(table([encoded(marker(2, 2, 1, log_id=LOG_ID)), *whole], offset=FIRST + 5))
    assert values(folder, 2) == whole


def of_partitions(folder: Path, interval: int, end: int, *, more: int = 0) -> list[Segment]:
    """Return the segments that tasks make of three partitions, one after the other."""
    segments: list[Segment] = []
    for partition in range(3):
        with RecordSpool(folder) as records:
            builder = SegmentBuilder("t", partition, records=records, interval=interval)
            mine = [
                record(n, [insert(more + n)], prev_seqno=n - 3, shard=f"s{partition}") for n in range(partition, end, 3)
            ]
            builder.add(batch([encoded(one) for one in mine], partition=partition))
            result = b"".join(serialized(builder.finish()))
        segments += (one for one in deserialized(pa.py_buffer(result)) if isinstance(one, Segment))
    return segments


def test_large_records_of_several_partitions_are_written_though_tasks_write_over_their_files_meanwhile(
    relay: RelayWriter, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_appender, "WRITE_BYTES", 64)
    go, append = Event(), AppendedFile.append

    def late(file: AppendedFile, records: memoryview) -> None:
        assert go.wait(60)
        append(file, records)

    monkeypatch.setattr(AppendedFile, "append", late)
    relay.begin(TargetPosition(service="shop"), history([0], 99), "", Owner(1))
    segments = of_partitions(tmp_path, 100, 6)
    relay.add_segments(segments)
    used = {path.stat().st_ino for path in tmp_path.iterdir()}
    segments.clear()
    assert len(of_partitions(tmp_path, 100, 6, more=100)) == 3
    assert {path.stat().st_ino for path in tmp_path.iterdir()} == used
    go.set()
    relay.sync_soon()
    relay.sync()
    assert values(folder) == [encoded(record(n, [insert(n)], prev_seqno=n - 3, shard=f"s{n % 3}")) for n in range(6)]


@pytest.mark.parametrize("interval", [100, 10])
def test_segments_of_several_partitions_are_written_in_the_order_of_the_log(
    relay: RelayWriter, folder: Path, tmp_path: Path, interval: int
) -> None:
    relay.begin(TargetPosition(service="shop"), history([0], 99), "", Owner(1))
    segments = of_partitions(tmp_path, interval, 30)
    assert len(segments) == 3 * -(-30 // interval)
    for at in range(len(segments) // 3):
        relay.add_segments(segments[at :: len(segments) // 3])
    relay.sync_soon()
    relay.sync()
    assert seqnos(folder) == list(range(30))
    assert len(names(folder)) > 2


def test_files_with_uncommitted_events_stay(folder: Path) -> None:
    relay = writer(folder, retention=0)
    relay.begin(TargetPosition(service="shop"), history([0], 99), "", Owner(1))
    (messages,) = Scanner("t").scan(batch(events(0, 40)))
    relay.add_range(messages, 0, 40)
    relay.sync_soon()
    relay.sync()
    files = RelayReader(folder).files
    relay.committed(Seqno(files[3].head.seqno))
    assert names(folder) == [file.name for file in files[3:]]
    relay.committed(Seqno(files[4].head.seqno - 1))
    assert names(folder) == [file.name for file in files[3:]]
    relay.close()


def test_trapped_events_are_passed_over(relay: RelayWriter, folder: Path) -> None:
    made = Rig(MemoryTarget(), history([0], 9), relay=relay)
    made.accept(table(log(*(record(n, [insert(n)]) for n in range(3)))))
    relay.begin(made.core.position, history([0], 9), "", Owner(2))
    found = Scanner("t").scan(batch(events(6, 8, epoch=2), offset=30))
    relay.add_range(found[0], 0, 2)
    relay.sync_soon()
    relay.sync()
    assert seqnos(folder) == [0, 1, 2, 6, 7]


def test_what_is_passed_over_before_an_event_that_is_given_up_stays(relay: RelayWriter, folder: Path) -> None:
    relay.begin(TargetPosition(service="shop"), history([0], 99), "", Owner(1))
    for value in (record(0, [insert(0)]), record(3, [insert(3)], last_frag=False)):
        relay.add_message(scanned([encoded(value)])[0])
    relay.void()
    relay.add_message(scanned([encoded(record(3, [insert(4)], epoch=2))])[0])
    relay.sync_soon()
    relay.sync()
    assert seqnos(folder) == [0, 3]


def test_a_full_disk_stops_before_the_commit(relay: RelayWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    target = MemoryTarget()
    made = rig(target, relay)
    made.accept(table(log(record(0, [insert(0)]))))
    target.log.clear()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskUnavailable, match="No space left on device") as caught:
        made.accept(table(events(1, 2), offset=FIRST + 1))
    assert target.log == ["stage"]
    assert target.position is not None
    assert target.position.seqno == 0
    assert caught.value.where["seqno"] == 1
    assert "relay.dir" in caught.value.hint


def test_a_disk_that_does_not_sync_stops_before_the_commit(relay: RelayWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    target = MemoryTarget()
    made = rig(target, relay)

    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(DiskUnavailable, match="Input/output error"):
        made.accept(table(log(record(0, [insert(0)]))))
    assert target.position is None


def test_a_relay_of_another_log_is_refused(relay: RelayWriter, folder: Path) -> None:
    rig(MemoryTarget(), relay).accept(table(log(record(0, [insert(0)]))))
    before = (folder / "thl.data.0000000001").read_bytes()
    with pytest.raises(ConfigError, match="of another log"):
        relay.begin(TargetPosition(service="shop"), replace(history([0], 0), log_id=LogId("0" * 32)), None, Owner(2))
    assert (folder / "thl.data.0000000001").read_bytes() == before


def test_a_relay_that_was_off_continues_in_a_file_of_its_own(folder: Path) -> None:
    target = MemoryTarget()
    relay = writer(folder)
    rig(target, relay).accept(table(log(*(record(n, [insert(n)]) for n in range(3)))))
    relay.close()
    Rig(target, history([0], 99)).accept(table(events(3, 6), offset=FIRST + 3))
    relay = writer(folder)
    rig(target, relay).accept(table(events(6, 9), offset=FIRST + 6))
    relay.close()
    assert [file.head.seqno for file in RelayReader(folder).files] == [-1, 5]
    with pytest.raises(LogDamaged, match=r"lacks events 3\.\.5"):
        seqnos(folder)
    assert len(values(folder, 6)) == 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.integers(0, 30))
def test_a_torn_tail_is_cut_at_the_next_start(tmp_path_factory: pytest.TempPathFactory, cut: int, applied: int) -> None:
    """Whatever of the file is there: nothing that the target has applied is lost, and the rest comes again."""
    folder = tmp_path_factory.mktemp("torn") / "relay"
    target = MemoryTarget()
    relay = writer(folder, size=1 << 30)
    sent = events(0, 31)
    made = rig(target, relay)
    made.accept(table([encoded(marker(1, 0, -1, log_id=LOG_ID)), *sent[: applied + 1]]))
    path = folder / "thl.data.0000000001"
    whole = path.stat().st_size
    before = deepcopy(target)
    made.accept(table(sent[applied + 1 :], offset=FIRST + applied + 1)) if applied < 30 else None
    relay.close()
    os.truncate(path, whole + cut % (path.stat().st_size - whole + 1))
    relay = writer(folder, size=1 << 30)
    rig(before, relay).accept(table(sent[applied + 1 :], offset=FIRST + applied + 1)) if applied < 30 else None
    relay.close()
    assert values(folder) == sent


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 100_000), st.integers(1, 255))
def test_a_wrong_byte_is_found_wherever_it_is(tmp_path_factory: pytest.TempPathFactory, place: int, flip: int) -> None:
    folder = tmp_path_factory.mktemp("flipped") / "relay"
    target = MemoryTarget()
    relay = writer(folder, size=1 << 30)
    rig(target, relay).accept(table(log(*(record(n, [insert(n)]) for n in range(10)))))
    relay.close()
    path = folder / "thl.data.0000000001"
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= flip
    path.write_bytes(content)
    relay = writer(folder)
    with pytest.raises(LogDamaged):
        rig(target, relay)
    relay.close()
    assert path.read_bytes() == content


def taken_away(folder: Path, what: str) -> None:
    path = max(folder.glob("thl.data.*"))
    match what:
        case "file deleted":
            path.unlink()
        case "folder deleted":
            shutil.rmtree(folder)
        case "folder moved":
            folder.rename(folder.with_name("other"))
        case "file emptied":
            os.truncate(path, 0)
        case "file cut":
            os.truncate(path, path.stat().st_size // 2)
        case "file replaced":
            path.unlink()
            path.write_bytes(b"")
        case _:
            (folder / LOCK).unlink()


TAKEN = ["file deleted", "folder deleted", "folder moved", "file emptied", "file cut", "file replaced", "lock deleted"]


@pytest.mark.parametrize("what", TAKEN)
def test_nothing_is_committed_after_the_relay_was_taken_away(tmp_path: Path, folder: Path, what: str) -> None:
    sent, target = events(0, 60), MemoryTarget()
    with closing(writer(folder, size=1 << 20)) as relay:
        made = rig(target, relay)
        made.accept(table([encoded(marker(1, 0, -1, log_id=LOG_ID)), *sent[:25]]))
        taken_away(folder, what)
        with pytest.raises(ConfigError, match="another program has") as failed:
            made.accept(table(sent[25:], offset=FIRST + 25))
        assert "let no other program change the folder" in failed.value.hint
    assert target.position is not None
    assert target.position.seqno == 24
    if what in ("file deleted", "file replaced"):
        with closing(writer(folder, size=1 << 20)) as relay:
            rig(target, relay).accept(table(sent[25:], offset=FIRST + 25))
        assert values(folder, 25) == sent[25:]
