"""A relay is an input of `connector.consume`: the events and positions that Kafka would give."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.consume import Action, ConsumerPosition, Part, RelayConsumer, RowChanges, Start
from connector.errors import ConfigError, HistoriesDiffer, LogDamaged
from connector.inspect.relay import relay_entries, relay_events
from connector.inspect.thl_events.choice import Choice
from connector.log.ids import UNKNOWN_SHARD
from tests.support.fragments import load_record
from tests.support.memory_target import MemoryTarget
from tests.support.relay import writer
from tests.unit.applier.test_core import Rig, history, insert, log, record, table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "relay"
    relay = writer(made)
    large = [record(5, [insert(50 + n)], fragno=n, last_frag=n == 9, rows=n + 1) for n in range(10)]
    before, after = ([record(n, [insert(n)]) for n in some] for some in (range(5), range(6, 12)))
    rig = Rig(MemoryTarget(), history([0], 99), relay=relay)
    rig.accept(table(log(*before, *large, *after)))
    relay.close()
    return made


def test_every_transaction_comes_once_and_whole(folder: Path) -> None:
    found = list(RelayConsumer(folder, event_bytes=100))
    assert [event.seqno for event in found] == list(range(12))
    rows = [row.after for event in found for change in event.changes for row in change.rows]  # type: ignore[union-attr]
    assert [row["id"] for row in rows if row] == [*range(5), *range(50, 60), *range(6, 12)]
    assert found[5].rows == 10
    assert found[5].gtid == "6f1c9a52-0000-11ee-8c99-0242ac120002:6"
    assert found[-1].position.offsets == {0: 22}


@pytest.mark.parametrize("start", [Start.seqno(4), Start.oldest(), Start.beginning()])
def test_a_start_is_found(folder: Path, start: Start) -> None:
    assert [event.seqno for event in RelayConsumer(folder, start=start)] == list(range(start.number, 12))


def test_a_position_continues_after_its_event(folder: Path) -> None:
    consumer = iter(RelayConsumer(folder))
    fifth = [next(consumer) for _ in range(5)][-1]
    stored = ConsumerPosition.from_json(fifth.position.to_json())
    assert [event.seqno for event in RelayConsumer(folder, start=stored)] == list(range(5, 12))


def test_a_position_of_another_history_is_refused(folder: Path) -> None:
    fields = {"service": "shop", "log_id": "f" * 32, "seqno": 4, "epoch": 2}
    with pytest.raises(HistoriesDiffer):
        RelayConsumer(folder, start=ConsumerPosition(**fields))  # type: ignore[arg-type]
    with pytest.raises(HistoriesDiffer):
        RelayConsumer(folder, start=ConsumerPosition(**fields | {"epoch": 1, "log_id": "0" * 32}))  # type: ignore[arg-type]


def test_a_time_cannot_be_found(folder: Path) -> None:
    with pytest.raises(ConfigError, match="beginning"):
        RelayConsumer(folder, start=Start.gtid("6f1c9a52-0000-11ee-8c99-0242ac120002:6"))


def test_events_before_damage_come_first(folder: Path) -> None:
    path = sorted(folder.glob("thl.data.*"))[1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = []
    with pytest.raises(LogDamaged, match="a checksum is wrong"):
        found.extend(event.seqno for event in RelayConsumer(folder))
    consumer = RelayConsumer(folder)
    with pytest.raises(LogDamaged):
        for event in consumer:
            found.append(event.seqno)
    assert found


def test_load_comes_from_a_relay_as_from_kafka(tmp_path: Path) -> None:
    sent = [
        record(0, [insert(1)]),
        load_record(1, [insert(1) | {"action": "read"}]),
        load_record(2, part=Part.END, shard=UNKNOWN_SHARD),
        record(3, [insert(2)], last_barrier=2),
    ]
    relay = writer(tmp_path / "relay")
    Rig(MemoryTarget(), history([0], 99), relay=relay).accept(table(log(*sent)))
    relay.close()
    found = list(RelayConsumer(tmp_path / "relay"))
    assert [event.load and event.load.part for event in found] == [None, Part.ROWS, Part.END, None]
    (rows,) = found[1].changes
    assert isinstance(rows, RowChanges)
    assert rows.action is Action.READ
    listed = relay_events(tmp_path / "relay", "t", Choice())
    assert [one.fragment["kind"] for one in listed] == ["transaction", "load", "load", "transaction"]
    (entry,) = relay_entries(tmp_path / "relay")
    assert (entry.first, entry.last) == (0, 3)
