"""`thl purge`: whole files at the beginning, anything at the end; never what an intent needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ConfigError
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
    with Purge(folder) as purge:
        deletions = purge.deletions(
            None if low is None else Seqno(low),
            None if high is None else Seqno(high),
            None if needed is None else intent(*needed),
        )
        if deletions:
            purge.delete(deletions)
        return [deletion.text for deletion in deletions]


def test_the_beginning_goes_in_whole_files(folder: Path) -> None:
    files = RelayReader(folder).files
    cut = files[2].first + 1
    purged(folder, None, cut)
    assert names(folder) == [file.name for file in files[2:]]
    assert seqnos(folder) == list(range(files[2].first, 30))


def test_everything_leaves_the_newest_file(folder: Path) -> None:
    newest = names(folder)[-1]
    purged(folder, None, 1000)
    assert names(folder) == [newest]
    assert purged(folder, None, 1000) == []


@pytest.mark.parametrize("low", range(1, 30))
def test_the_end_goes_from_any_event_on(folder: Path, low: int) -> None:
    purged(folder, low, None)
    assert seqnos(folder) == list(range(low))


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


def test_a_relay_that_an_applier_writes_is_refused(folder: Path) -> None:
    relay = writer(folder)
    with pytest.raises(ConfigError, match="another process"):
        purged(folder, None, 5)
    relay.close()
