"""`thl purge`: whole files at the beginning, anything at the end; never what an intent needs."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from connector.clock import SystemClock
from connector.errors import ConfigError, DiskUnavailable
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import Intent
from connector.relay.purge import Purge
from connector.relay.reader import RelayReader
from tests.support.memory_target import MemoryTarget
from tests.support.relay import names, seqnos, writer
from tests.unit.applier.test_core import Rig, history, insert, log, record, table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "relay"
    relay = writer(made)
    rig = Rig(MemoryTarget(), history([0], 99), relay=relay)
    rig.accept(table(log(*(record(n, [insert(n)]) for n in range(30)))))
    relay.close()
    return made


def intent(first: int, last: int) -> Intent:
    return Intent(log_id=LogId("log"), first=Seqno(first), last=Seqno(last), epoch=Epoch(1), writers=2, hash_version=1,
                  undivided=frozenset())  # fmt: skip


def purged(folder: Path, low: int | None, high: int | None, needed: tuple[int, int] | None = None) -> list[str]:
    with Purge(folder, SystemClock()) as purge:
        deletions = purge.deletions(
            None if low is None else Seqno(low),
            None if high is None else Seqno(high),
            None if needed is None else intent(*needed),
        )
        if deletions:
            purge.delete(deletions)
        return [deletion.text for deletion in deletions]


@pytest.mark.parametrize("high", range(30))
def test_the_beginning_goes_in_whole_files_of_events_up_to_the_bound(folder: Path, high: int) -> None:
    files = RelayReader(folder).files
    purged(folder, None, high)
    left = [file for file, after in pairwise(files) if after.head.seqno > high] + [files[-1]]
    assert names(folder) == [file.name for file in left]
    assert seqnos(folder) == list(range(left[0].first, 30))


@pytest.mark.parametrize(("low", "high"), [(None, 29), (1, None), (4, None)])
@pytest.mark.parametrize("done", range(4))
def test_a_purge_that_is_interrupted_leaves_no_gap(
    folder: Path, monkeypatch: pytest.MonkeyPatch, low: int | None, high: int | None, done: int
) -> None:
    unlink, left = Path.unlink, iter(range(done))

    def interrupted(path: Path) -> None:
        if next(left, None) is None:
            raise OSError(5, "Input/output error")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(DiskUnavailable, match="Input/output error"):
        purged(folder, low, high)
    found = seqnos(folder)
    assert found == list(range(found[0], found[-1] + 1))
    assert (found[0] > 0, found[-1] < 29) == (low is None and done > 0, low is not None and done > 0)


@pytest.mark.parametrize(("low", "high"), [(None, 15), (15, None)])
def test_what_is_deleted_is_gone_after_a_power_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, low: int | None, high: int | None
) -> None:
    synced: list[tuple[list[str], list[int]]] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (fsync(number), synced.append((names(folder), seqnos(folder)))))
    purged(folder, low, high)
    assert synced[-1] == (names(folder), seqnos(folder))


def test_everything_leaves_the_newest_file(folder: Path) -> None:
    newest = names(folder)[-1]
    purged(folder, None, 1000)
    assert names(folder) == [newest]
    assert purged(folder, None, 1000) == []


@pytest.mark.parametrize("low", range(1, 30))
def test_the_end_goes_from_any_event_on(folder: Path, low: int) -> None:
    purged(folder, low, None)
    assert seqnos(folder) == list(range(low))


def later(folder: Path) -> list[int]:
    """Delete the oldest files, and return the events that are left."""
    purged(folder, None, 12)
    return seqnos(folder)


@pytest.mark.parametrize("before", [0, 1, 5])
def test_the_end_from_the_oldest_event_on_or_from_before_it_is_everything(folder: Path, before: int) -> None:
    oldest = later(folder)[0]
    assert oldest > before
    assert len(purged(folder, oldest - before, None)) > 1
    assert names(folder) == []


@pytest.mark.parametrize("done", range(3))
def test_a_purge_of_everything_that_is_interrupted_leaves_the_oldest_events(
    folder: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    before, unlink, left = later(folder), Path.unlink, iter(range(done))

    def interrupted(path: Path) -> None:
        if next(left, None) is None:
            raise OSError(5, "Input/output error")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(DiskUnavailable, match="Input/output error"):
        purged(folder, before[0], None)
    found = seqnos(folder)
    assert found == before[: len(found)]


def test_everything_is_refused_where_an_intent_needs_it(folder: Path) -> None:
    left = later(folder)
    with pytest.raises(ConfigError, match="needs these events"):
        purged(folder, left[0], None, (left[0], left[1]))
    assert seqnos(folder) == left


def test_all_events_named_by_both_bounds_leave_the_newest_file(folder: Path) -> None:
    left, newest = later(folder), names(folder)[-1]
    purged(folder, left[0], left[-1])
    assert names(folder) == [newest]


def test_a_middle_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="missing between others"):
        purged(folder, 3, 20)
    assert seqnos(folder) == list(range(30))


@pytest.mark.parametrize(("low", "high"), [(None, 29), (3, None), (20, None)])
def test_what_an_intent_needs_is_refused(folder: Path, low: int | None, high: int | None) -> None:
    with pytest.raises(ConfigError, match="needs these events") as caught:
        purged(folder, low, high, (5, 20))
    assert caught.value.where["needed"] == "5..20"
    assert seqnos(folder) == list(range(30))


def test_a_folder_in_which_others_can_put_files_is_refused(folder: Path) -> None:
    folder.chmod(0o1777)
    before = sorted(folder.iterdir())
    with pytest.raises(ConfigError, match="can be written by other users"):
        Purge(folder, SystemClock())
    assert sorted(folder.iterdir()) == before


def test_a_relay_that_an_applier_writes_is_refused(folder: Path) -> None:
    relay = writer(folder)
    with pytest.raises(ConfigError, match="another process"):
        purged(folder, None, 5)
    relay.close()
