"""An applier's start with a relay that is there: is it of this target, whole, and without gaps in an intent?"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from connector.clock import SystemClock
from connector.errors import ConfigError, LogDamaged
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import Intent
from connector.relay.folder import LOCK
from connector.relay.purge import Purge
from connector.relay.reader import RelayReader
from tests.support.fragments import encoded, marker, record
from tests.support.memory_target import MemoryTarget
from tests.support.relay import names, seqnos, values, writer
from tests.unit.applier.test_core import LOG_ID, Rig, history, insert, table

FIRST = 1  # offset of the first event
LATE = 100  # a token that no start of these tests reaches
SENT = [encoded(record(n, [insert(n)])) for n in range(30)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "relay"


def applied(folder: Path | None, target: MemoryTarget, first: int, end: int) -> None:
    """Start an applier, with a relay or without one, and apply events."""
    with ExitStack() as stack:
        relay = None if folder is None else stack.enter_context(closing(writer(folder)))
        rig = Rig(target, history([0], 99), relay=relay)
        before = [] if first else [encoded(marker(1, 0, -1, log_id=LOG_ID))]
        if sent := [*before, *SENT[first:end]]:
            rig.accept(table(sent, offset=FIRST + first - len(before)))


def target_at(seqno: int, intent: int | None = None) -> MemoryTarget:
    """A target at an event, with an intent from the next one up to another."""
    made = MemoryTarget()
    applied(None, made, 0, seqno + 1)
    made.token = LATE
    if intent is not None:
        assert made.position is not None
        first, last = Seqno(seqno + 1), Seqno(intent)
        fields = {"epoch": Epoch(1), "writers": 2, "hash_version": 1, "undivided": frozenset()}
        made.position = replace(made.position, intent=Intent(log_id=LOG_ID, first=first, last=last, **fields))  # type: ignore[arg-type]
    return made


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_relay_of_another_target_is_refused_and_stays(folder: Path) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 30)
    before = content(folder)
    with pytest.raises(ConfigError, match="of another target") as caught:
        applied(folder, MemoryTarget(), 0, 30)
    assert "name another folder, or empty this one" in caught.value.hint
    assert "thl purge" not in caught.value.hint
    assert (caught.value.where["seqno"], caught.value.where["newest"]) == (-1, 29)
    assert content(folder) == before
    applied(folder, target, 30, 30)
    for path in folder.iterdir():
        path.unlink()
    applied(folder, MemoryTarget(), 0, 30)
    assert values(folder) == SENT


@pytest.mark.parametrize("at", [5, 9, 12])
def test_another_target_is_refused_however_often_it_was_started(folder: Path, at: int) -> None:
    """Its token may be the larger one, as a target's that has another configuration with the same relay.dir."""
    first, second = target_at(9, 20), target_at(at)
    first.token, first.identity, second.identity = 3, "first", "second"
    applied(folder, first, 10, 20)
    before = content(folder)
    with pytest.raises(ConfigError, match="of another target") as caught:
        applied(folder, second, at + 1, 30)
    assert "thl purge" not in caught.value.hint
    assert content(folder) == before


def test_a_relay_without_the_target_s_identity_is_taken_over(folder: Path) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 12)
    (folder / LOCK).write_bytes(b"%020d\n" % target.token)  # as an earlier version wrote it
    target.identity = "mine"
    applied(folder, target, 12, 20)
    assert seqnos(folder) == list(range(20))
    other = deepcopy(target)
    other.identity = "another"
    with pytest.raises(ConfigError, match="of another target"):
        applied(folder, other, 20, 30)
    applied(folder, target, 20, 30)
    assert values(folder) == SENT


def test_a_target_that_is_ahead_of_the_relay_of_another_is_refused(folder: Path) -> None:
    target = MemoryTarget()
    for _ in range(3):
        applied(folder, target, 0 if target.position is None else 10, 10)
    other = MemoryTarget()
    applied(None, other, 0, 20)
    with pytest.raises(ConfigError, match="of another target"):
        applied(folder, other, 20, 30)
    assert seqnos(folder) == list(range(10))


def test_a_target_that_was_set_back_goes_on_after_a_purge(folder: Path) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 12)
    backup = deepcopy(target)
    applied(folder, target, 12, 20)
    applied(folder, target, 20, 30)
    with pytest.raises(ConfigError, match="before it was set back") as caught:
        applied(folder, backup, 12, 30)
    assert caught.value.hint.endswith("thl purge --from-seqno 12")
    assert seqnos(folder) == list(range(30))
    with Purge(folder, SystemClock()) as purge:
        purge.delete(purge.deletions(Seqno(12), None, None))
    applied(folder, backup, 12, 30)
    assert values(folder) == SENT


def test_a_lock_file_with_something_else_is_refused(folder: Path) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 12)
    (folder / LOCK).write_bytes(b"something else")
    with pytest.raises(ConfigError, match="something else than a token"):
        applied(folder, target, 12, 20)
    assert seqnos(folder) == list(range(12))


@pytest.mark.parametrize("size", [1, 9, 100])
def test_a_newest_file_without_its_first_record_is_damage_if_the_target_has_its_events(folder: Path, size: int) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 30)
    newest = RelayReader(folder).files[-1]
    os.truncate(newest.path, size)
    before = content(folder)
    with pytest.raises(LogDamaged, match="the file ends within a record") as caught:
        applied(folder, target, 30, 30)
    assert caught.value.where["file"] == str(newest.path)
    assert content(folder) == before
    applied(folder, target_at(newest.head.seqno), newest.first, 30)
    assert values(folder) == SENT


@pytest.mark.parametrize("lost", ["first files", "a file", "events that were applied without a relay"])
@pytest.mark.parametrize("last", [17, 29])
def test_a_relay_that_lacks_a_part_of_an_intent_is_written_again_from_its_first_event(
    folder: Path, lost: str, last: int
) -> None:
    target = MemoryTarget()
    if lost == "events that were applied without a relay":
        applied(folder, target, 0, 9)
        applied(None, target, 9, 12)
        applied(folder, target, 12, 30)
    else:
        applied(folder, target, 0, 30)
        files = RelayReader(folder).files
        for file in files[:3] if lost == "first files" else files[2:3]:
            assert file.first < 17
            file.path.unlink()
    half = target_at(1, last)
    applied(folder, half, 2, 30)
    assert half.position is not None
    assert half.position.seqno == last
    assert values(folder, 2) == SENT[2 : last + 1]


def test_files_of_an_intent_that_the_relay_has_stay_as_they_are(folder: Path) -> None:
    target = MemoryTarget()
    applied(folder, target, 0, 30)
    inodes = {name: (folder / name).stat().st_ino for name in names(folder)}
    applied(folder, target_at(1, 29), 2, 30)
    assert {name: (folder / name).stat().st_ino for name in names(folder)} == inodes
    assert values(folder) == SENT
