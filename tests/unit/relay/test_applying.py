"""A target gets from a relay what it would get from Kafka, or nothing at all."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from connector.applier import open_commit
from connector.applier.from_relay import RelayApplier, causes_left
from connector.applier.stop_condition import ToSeqno
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError, HistoriesDiffer, LogDamaged
from connector.log.compact.scan import Messages, Scanner
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import CAUSES, Intent, TargetPosition
from connector.relay.folder import Owner
from connector.relay.reader import RelayReader
from connector.targets.open import open_target
from tests.support.fragments import batch, change, encoded, marker, record, statement
from tests.support.memory_target import MemoryTarget
from tests.support.partitioned_log import PartitionedLog
from tests.support.relay import SMALL, seqnos, writer
from tests.support.relay import values as stored
from tests.unit.applier.test_core import LOG_ID, Rig, history, ids, insert, log, table

CREATE = "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(100))"


def applied(
    folder: Path, target: MemoryTarget, *, until: int | None = None, alone: bool = False, batch: int = 1500
) -> None:
    """Apply a relay in batches of a few events."""
    config = Config(service="shop", apply=Apply(batch_bytes=batch))
    stop = None if until is None else ToSeqno(Seqno(until))
    run = RelayApplier(config, folder, SystemClock(), Event(), until=stop, opened=lambda: target)
    run.run(intent_alone=alone)


def filled(folder: Path, *values: bytes, firsts: tuple[int, ...] = (0,), size: int = SMALL) -> MemoryTarget:
    """Write a relay while a target gets the log; return the target."""
    target = MemoryTarget()
    relay = writer(folder, size=size)
    rig = Rig(target, history(firsts, 99), relay=relay)
    for offset, value in enumerate(values):
        rig.accept(table([value], offset=offset))
    relay.close()
    return target


def thirty() -> list[bytes]:
    ddl = record(0, [statement(CREATE)], kind="ddl", shard="#UNKNOWN")
    rows = [record(n, [insert(n)], last_barrier=0) for n in range(1, 30)]
    return log(ddl, *rows)


def state(target: MemoryTarget) -> tuple[object, object, object]:
    tables = {name: found.rows for name, found in target.tables.items()}
    return tables, target.position, target.statements


def half(source: MemoryTarget, folder: Path, first: int, last: int) -> MemoryTarget:
    """A target at the event before an intent."""
    target = MemoryTarget()
    if first:
        applied(folder, target, until=first - 1)
    assert target.position is not None or not first
    intent = Intent(
        log_id=LOG_ID,
        first=Seqno(first),
        last=Seqno(last),
        epoch=Epoch(1),
        writers=2,
        hash_version=1,
        undivided=frozenset(),
    )
    position = target.position or target.claim("shop")
    target.position = replace(position, intent=intent)
    target.log.clear()
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "relay"


def test_an_empty_target_gets_histories_from_a_relay(folder: Path, tmp_path: Path) -> None:
    ddl = record(0, [statement("CREATE TABLE orders (id INT PRIMARY KEY, v INT)")], kind="ddl", shard="#UNKNOWN")
    filled(folder, *log(ddl, *(record(n, [change("insert", [(None, [n, n])])], last_barrier=0) for n in range(1, 30))))
    options = Target(url=SecretStr(f"sqlite:///{tmp_path / 'target.db'}"), history=("shop.orders",))
    config = Config(service="shop", apply=Apply(batch_bytes=1500), target=options)
    run = RelayApplier(config, folder, SystemClock(), Event(), opened=lambda: open_target(options, SystemClock()))
    run.run(intent_alone=False)
    with closing(sqlite3.connect(tmp_path / "target.db")) as db:
        found = db.execute('SELECT seqno, action FROM "shop__history.orders" ORDER BY seqno').fetchall()
    assert found == [(0, "statement"), *((n, "insert") for n in range(1, 30))]


def test_an_empty_target_gets_everything(folder: Path) -> None:
    source = filled(folder, *thirty())
    target = MemoryTarget()
    applied(folder, target)
    assert state(target) == state(source)
    assert target.position is not None
    assert target.position.offsets == {0: 31}
    assert target.position.gtid_set == "6f1c9a52-0000-11ee-8c99-0242ac120002:1-30"


def test_a_target_that_is_behind_gets_the_rest_and_continues_from_kafka(folder: Path) -> None:
    values = thirty()
    source = filled(folder, *values)
    target = MemoryTarget()
    applied(folder, target, until=12)
    assert ids(target) == set(range(1, 13))
    applied(folder, target)
    assert state(target) == state(source)
    further = [encoded(record(n, [insert(n)], last_barrier=0)) for n in range(30, 33)]
    Rig(target, history([0], 99)).accept(table(further, offset=31))
    assert ids(target) == set(range(1, 33))


def test_a_target_that_has_everything_does_not_change(folder: Path) -> None:
    target = filled(folder, *thirty())
    before = state(target)
    applied(folder, target)
    assert state(target) == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.booleans()), min_size=1, max_size=25), st.data())
def test_partitions_fragments_and_epochs_come_as_from_kafka(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    """Events of three partitions, in fragments, some given up: target and offsets are the same."""
    made = PartitionedLog(3)
    order: list[tuple[int, int]] = [(p, 0) for p in range(3)]
    for partition, fragments, given_up in steps:
        seqno = made.last + 1
        fields = {"epoch": len(made.firsts), "prev_seqno": made.tails[partition], "shard": f"s{partition}"}
        for number in range(fragments - given_up):
            last = number == fragments - 1
            changes = [insert(1000 * seqno + number, table=f"t{partition}")]
            made.add(partition, record(seqno, changes, fragno=number, rows=number + 1, last_frag=last, **fields))
            order.append((partition, len(made.values[partition]) - 1))
        if given_up:
            made.epoch()
            order += [(p, len(made.values[p]) - 1) for p in range(3)]
        else:
            made.tails[partition] = made.last = seqno
    folder = tmp_path_factory.mktemp("relay") / "relay"
    source = MemoryTarget()
    relay = writer(folder)
    rig = Rig(source, history(made.firsts, max(made.last, 0)), partitions=3, relay=relay)
    while order:
        count = data.draw(st.integers(1, len(order)))
        taken, order = order[:count], order[count:]
        rig.accept([batch([made.values[p][at]], partition=p, offset=at) for p, at in taken])
    relay.close()
    if source.position is None:
        return
    target = MemoryTarget()
    applied(folder, target)
    assert state(target)[0] == state(source)[0]
    assert target.position is not None
    assert (target.position.seqno, target.position.epoch) == (source.position.seqno, source.position.epoch)
    again = Rig(target, history(made.firsts, 99), partitions=3)
    for partition in range(3):
        at = target.position.offsets.get(partition, 0)
        again.accept(
            [batch([value], partition=partition, offset=at + n) for n, value in enumerate(made.values[partition][at:])]
        )
    assert state(target)[0] == state(source)[0]


def test_a_large_event_is_staged_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 0)
    fragments = [record(1, [insert(n)], fragno=n, last_frag=n == 49, rows=n + 1) for n in range(50)]
    source = filled(folder, *log(record(0), *fragments))
    target = MemoryTarget()
    applied(folder, target)
    assert target.log.count("part") > 2
    assert ids(target) == ids(source) == set(range(50))


@pytest.mark.parametrize(("first", "last"), [(1, 29), (3, 17), (29, 29)])
def test_an_intent_is_made_whole_and_nothing_else_changes(folder: Path, first: int, last: int) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, first, last)
    applied(folder, target, alone=True)
    assert target.log == ["stage", f"commit {last}"]
    assert ids(target) == set(range(1, last + 1))
    assert target.position is not None
    assert target.position.intent is None


def test_an_intent_is_made_whole_first_then_the_rest_follows(folder: Path) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, 3, 17)
    applied(folder, target, batch=1 << 20)
    assert [one for one in target.log if one.startswith("commit")] == ["commit 17", "commit 29"]
    assert state(target) == state(source)


def damaged_by(folder: Path, damage: str) -> None:
    paths = sorted(folder.glob("thl.data.*"))
    middle = paths[len(paths) // 2]
    match damage:
        case "missing":
            middle.unlink()
        case "truncated":
            os.truncate(middle, middle.stat().st_size - 3)
        case "flipped":
            content = bytearray(middle.read_bytes())
            content[len(content) // 2] ^= 1
            middle.write_bytes(content)
        case "end missing":
            for path in paths[len(paths) // 2 :]:
                path.unlink()
        case "torn end":
            os.truncate(paths[-1], paths[-1].stat().st_size - 1)
        case "all missing":
            for path in paths:
                path.unlink()


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "end missing", "torn end", "all missing"])
def test_a_damaged_relay_names_the_events_and_nothing_changes(folder: Path, damage: str) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, 2, 29)
    before = state(target)
    damaged_by(folder, damage)
    with pytest.raises((LogDamaged, ConfigError)) as caught:
        applied(folder, target, alone=True)
    assert "2..29" in str(caught.value)
    assert state(target) == before
    assert target.log == []


def test_a_relay_of_another_log_is_refused(folder: Path) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, 2, 29)
    assert target.position is not None
    target.position = replace(target.position, log_id=LogId("0" * 32))
    before = state(target)
    with pytest.raises(HistoriesDiffer, match="another log"):
        applied(folder, target)
    assert state(target) == before


def test_an_intent_of_another_log_is_refused_though_the_target_has_no_position(folder: Path) -> None:
    target = half(filled(folder, *thirty()), folder, 0, 29)
    assert target.position is not None
    assert target.position.intent is not None
    target.position = replace(target.position, intent=replace(target.position.intent, log_id=LogId("0" * 32)))
    with pytest.raises(HistoriesDiffer, match="another log"):
        applied(folder, target)
    assert target.log == []


@pytest.mark.parametrize("epoch", [0, 3])
def test_a_relay_of_another_epoch_is_refused(folder: Path, epoch: int) -> None:
    """Of an older one: the target has events that the log goes on without. Of a newer one: the relay has them."""
    source = filled(folder, *thirty())
    target = half(source, folder, 2, 29)
    assert target.position is not None
    target.position = replace(target.position, epoch=Epoch(epoch))
    with pytest.raises(HistoriesDiffer, match="Log epoch numbers do not match"):
        applied(folder, target)


def test_an_intent_of_another_epoch_is_refused(folder: Path) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, 2, 29)
    assert target.position is not None
    assert target.position.intent is not None
    target.position = replace(target.position, intent=replace(target.position.intent, epoch=Epoch(2)))
    with pytest.raises(LogDamaged, match=r"events 2\.\.29 up to epoch 2; the relay has them up to event 29 of epoch 1"):
        applied(folder, target)
    assert target.log == []


def test_a_folder_in_which_others_can_put_files_is_refused(folder: Path) -> None:
    filled(folder, *thirty())
    target = MemoryTarget()
    folder.chmod(0o1777)
    with pytest.raises(ConfigError, match="can be written by other users"):
        applied(folder, target)
    assert target.log == []
    folder.chmod(0o755)
    applied(folder, target)


def test_a_relay_of_another_service_is_refused(folder: Path) -> None:
    filled(folder, *thirty())
    run = RelayApplier(Config(service="other"), folder, SystemClock(), Event(), opened=MemoryTarget)
    with pytest.raises(ConfigError, match="another service"):
        run.run()


def test_events_that_tasks_leave_on_kafka_are_whole_in_the_relay_and_an_intent_with_them_is_made_whole(
    folder: Path,
) -> None:
    """Their messages come without values, and are fetched when they are applied."""
    values = thirty()
    left = {5, 12, 13, 29}
    relay = writer(folder)
    source = MemoryTarget()
    rig = Rig(source, history((0,), 99), relay=relay, large=values)
    rig.accept(table([None if offset in left else value for offset, value in enumerate(values)]))
    relay.close()
    assert stored(folder) == values[1:]
    target = half(source, folder, 2, 29)
    applied(folder, target, alone=True)
    assert state(target)[0] == state(source)[0]
    assert ids(target) == set(range(1, 30))


TRAPPED = (Range(Seqno(15), Seqno(19)),)


def after_a_fork(folder: Path) -> tuple[MemoryTarget, MemoryTarget, History]:
    """Write events 0..19 to a relay of which the target commits 0..9; then the log goes on without 15..19 from 20 on.

    Returns:
        The target at event 9; one that another host's applier has brought from there to event 24; the history.
    """
    values = log(*(record(n, [insert(n)]) for n in range(20)))
    further = [encoded(marker(2, 20, 19, log_id=LOG_ID)), *events_after_a_fork(20, 25)]
    known = history([0, 20], 99)
    forked = replace(known.epochs[1], forked=Forked(f"{known.epochs[0].server_uuid}:16-20", TRAPPED))
    known = replace(known, epochs=(known.epochs[0], forked))
    target = filled(folder, *values[:11])
    before = deepcopy(target)
    before.trapped = range(15, 20)
    relay = writer(folder)
    Rig(target, history([0], 19), relay=relay).accept(table(values[11:], offset=11))
    relay.close()
    assert seqnos(folder) == list(range(20))
    other = deepcopy(before)
    Rig(other, known).accept(table([*values[11:], *further], offset=11))
    assert ids(other) == {*range(15), *range(20, 25)}
    return before, other, known


def events_after_a_fork(first: int, end: int) -> list[bytes]:
    return [encoded(record(n, [insert(n)], epoch=2)) for n in range(first, end)]


def test_events_written_ahead_that_a_fork_traps_are_not_applied_with_an_intent(folder: Path) -> None:
    target, _, known = after_a_fork(folder)
    assert target.position is not None
    intent = Intent(
        log_id=LOG_ID,
        first=Seqno(10),
        last=Seqno(24),
        epoch=Epoch(2),
        writers=2,
        hash_version=1,
        undivided=frozenset(),
    )
    target.position = replace(target.position, intent=intent)
    relay = writer(folder)
    relay.begin(target.position, known, target.position.gtid_set, Owner(9))
    for found in Scanner("t").scan(batch(events_after_a_fork(20, 25), offset=32)):
        relay.add_range(found, 0, 5)
    relay.sync_soon()
    relay.close()
    assert seqnos(folder) == [*range(15), *range(20, 25)]
    applied(folder, target, alone=True)
    assert ids(target) == {*range(15), *range(20, 25)}
    assert target.position.intent is None


def test_an_archive_with_events_that_a_fork_traps_is_cut_before_them(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another host's applier has gone on past them, so that the relay is not continued but begins again after."""
    _, other, known = after_a_fork(folder)
    relay = writer(folder)
    Rig(other, known, relay=relay).accept(table(events_after_a_fork(25, 28), offset=37))
    relay.close()
    (warning,) = [record for record in caplog.records if "without events of the relay" in record.message]
    assert warning.__dict__["seqno"] == 15
    assert RelayReader(folder).newest == 27
    target = MemoryTarget()
    with pytest.raises(LogDamaged, match=r"lacks events 15\.\.24"):
        applied(folder, target)
    assert ids(target) <= set(range(15))


def test_an_event_of_another_epoch_that_is_not_applied_is_cut_off(folder: Path) -> None:
    target, _, _ = after_a_fork(folder)
    assert target.position is not None
    intent = Intent(
        log_id=LOG_ID,
        first=Seqno(10),
        last=Seqno(19),
        epoch=Epoch(2),
        writers=2,
        hash_version=1,
        undivided=frozenset(),
    )
    relay = writer(folder)
    relay.begin(replace(target.position, intent=intent), history([0, 12], 99), None, Owner(9))
    relay.close()
    assert seqnos(folder) == list(range(12))


def test_an_event_that_is_damaged_names_its_place_in_the_topic_and_the_folder(folder: Path) -> None:
    relay = writer(folder)
    relay.begin(MemoryTarget().claim("shop"), history([0], 99), None, Owner(1))
    (messages,) = Scanner("t").scan(batch([encoded(record(0, [insert(1)], rows=2))]))
    assert isinstance(messages, Messages)
    relay.add_range(messages, 0, 1)
    relay.sync_soon()
    relay.close()
    with pytest.raises(LogDamaged) as caught:
        applied(folder, MemoryTarget())
    assert caught.value.where["folder"] == str(folder)
    assert caught.value.where["at"] == "thl.shop-0@0"


def test_a_relay_that_begins_later_than_the_target_is_refused(folder: Path) -> None:
    filled(folder, *thirty())
    sorted(folder.glob("thl.data.*"))[0].unlink()
    target = MemoryTarget()
    with pytest.raises(LogDamaged, match=r"lacks events 0\.\."):
        applied(folder, target)
    assert target.log == []


def test_damage_after_the_intent_does_not_matter(folder: Path) -> None:
    source = filled(folder, *thirty())
    target = half(source, folder, 2, 5)
    damaged_by(folder, "flipped")
    applied(folder, target, alone=True)
    assert ids(target) == set(range(1, 6))
    with pytest.raises(ConnectorError):
        applied(folder, target)


@pytest.mark.parametrize(
    ("position", "mark", "causes"),
    [
        (TargetPosition(service="shop"), "", []),
        (TargetPosition(service="shop", seqno=Seqno(5), consistent=False), "", ["load"]),
        (TargetPosition(service="shop", seqno=Seqno(5), consistent=False, rewound_from=Seqno(5)), "", ["load"]),
        (TargetPosition(service="shop", seqno=Seqno(5), consistent=False, rewound_from=Seqno(6)), "", ["rewind"]),
        (TargetPosition(service="shop", seqno=Seqno(5)), "thl_excluded", ["quarantine"]),
        (TargetPosition(service="shop", seqno=Seqno(5)), "thl_inconsistent", ["skipped"]),
    ],
)
def test_causes_that_a_relay_does_not_end_are_left(
    tmp_path: Path, position: TargetPosition, mark: str, causes: list[str]
) -> None:
    """The marks of another service are not this one's."""
    config = Config(service="shop", target=Target(url=SecretStr(f"sqlite:///{tmp_path / 't.db'}")))
    with closing(open_target(config.target, SystemClock())) as target:
        target.claim("shop")
    with sqlite3.connect(tmp_path / "t.db") as db:
        for table_ in ("thl_excluded", "thl_inconsistent"):
            columns = db.execute(f"SELECT count(*) FROM pragma_table_info('{table_}')").fetchone()[0]
            values_ = ["shop" if table_ == mark else "other", *["1"] * (columns - 1)]
            db.execute(f"INSERT INTO {table_} VALUES ({', '.join('?' * columns)})", values_)
    assert causes_left(config, position) == causes
    assert set(causes) <= set(CAUSES)
