"""An applier with a stop condition applies the event of that position, and nothing after it."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.applier import open_commit
from connector.applier.stop_condition import StopCondition, ToEvent, ToGtid, ToHeartbeat, ToSeqno, ToTime
from connector.commands.grammar.bounds import gtid
from connector.errors import ConfigError
from connector.log.ids import Seqno
from connector.log.transaction.position import TargetPosition
from tests.support.compact_model import Keyed
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import UUID, Rig, histories, history, ids, insert, log, record, table

COMMITTED = 1_700_000_000_000_000


def stop_conditions(seqno: int) -> list[StopCondition]:
    """The four names of event N, as `record` makes it."""
    return [
        ToSeqno(Seqno(seqno)),
        ToEvent("binlog.000001", 1000 + seqno),
        ToGtid(f"{UUID}:{seqno + 1}"),
        ToTime(COMMITTED + seqno),
    ]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
@given(histories(), st.data())
def test_messages_in_any_batches_end_exactly_at_the_stop_condition(
    made: tuple[list[bytes], list[int], list[dict[int, int]]], data: st.DataObject
) -> None:
    values, firsts, states = made
    seqno = data.draw(st.integers(0, len(states) - 1))
    until = data.draw(st.sampled_from(stop_conditions(seqno)))
    target = MemoryTarget()
    open_commit.STAGE_BYTES, kept = data.draw(st.sampled_from([1, 1 << 20])), open_commit.STAGE_BYTES  # type: ignore[misc]
    try:
        rig, at = Rig(target, history(firsts, len(states) - 1), until=until), 0
        while at < len(values) and not rig.core.done:
            step = data.draw(st.integers(1, 12))
            rig.accept(table(values[at : at + step], offset=at))
            at += step
    finally:
        open_commit.STAGE_BYTES = kept  # type: ignore[misc]
    assert target.position is not None
    assert target.position.seqno == seqno
    assert {row[0]: row[1] for row in target.tables.get("shop.orders", Keyed([0])).rows.values()} == states[seqno]
    # Whether anything was committed later, only a later event tells.
    assert rig.core.done is (not isinstance(until, ToTime) or seqno < len(states) - 1)
    if rig.core.done and not isinstance(until, ToTime):
        assert Rig(target, history(firsts, len(states) - 1), until=until).core.done


def test_a_range_of_events_is_cut_by_each_stop_condition() -> None:
    values = log(*(record(n, [insert(n)]) for n in range(6)))
    for until in stop_conditions(3):
        target = MemoryTarget()
        rig = Rig(target, history([0], 5), until=until)
        rig.accept(table(values))
        assert ids(target) == {0, 1, 2, 3}
        assert rig.core.done


def test_a_large_event_beyond_the_stop_condition_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    parts = [record(1, [insert(10 + n)], last_frag=n == 2, fragno=n, rows=n + 1) for n in range(3)]
    for until in stop_conditions(0):
        target = MemoryTarget()
        rig = Rig(target, history([0], 1), until=until)
        for at, value in enumerate(log(record(0, [insert(1)]), *parts)):
            if not rig.core.done:
                rig.accept(table([value], offset=at))
        assert rig.core.done
        assert (ids(target), target.position and target.position.seqno) == ({1}, 0)
        if isinstance(until, ToTime):
            assert target.log[-1] == "discard"


def test_a_position_within_an_event_or_in_an_earlier_file_ends_before_the_event() -> None:
    records = [record(n, [insert(n)]) for n in range(3)] + [
        record(3, [insert(3)], event_id=f"binlog.000002:{500:016d};7")
    ]
    for until, last in ((ToEvent("binlog.000001", 1001), 1), (ToEvent("binlog.000001", 9999), 2)):
        target = MemoryTarget()
        rig = Rig(target, history([0], 3), until=until)
        rig.accept(table(log(*records)))
        assert target.position is not None
        assert (target.position.seqno, rig.core.done) == (last, True)
    far = [record(0, [insert(0)], event_id=f"binlog.000001:{500:016d};7"),
           record(1, [insert(1)], event_id=f"binlog.000001:{700:016d};7")]  # fmt: skip
    target = MemoryTarget()
    Rig(target, history([0], 1), until=ToEvent("binlog.000001", 600)).accept(table(log(*far)))
    assert ids(target) == {0}


def test_binary_logs_are_compared_by_number_and_not_across_servers() -> None:
    records = [
        record(0, [insert(0)], event_id=f"binlog.999999:{500:016d};7"),
        record(1, [insert(1)], event_id=f"other.1000001:{500:016d};7"),
        record(2, [insert(2)], event_id=f"binlog.1000000:{500:016d};7"),
        record(3, [insert(3)], event_id=f"binlog.1000001:{500:016d};7"),
    ]
    target = MemoryTarget()
    Rig(target, history([0], 3), until=ToEvent("binlog.1000000", 800)).accept(table(log(*records)))
    assert ids(target) == {0, 1, 2}


def test_the_first_later_commit_time_ends_the_run_though_earlier_ones_follow() -> None:
    times = [10, 30, 20, 40]
    target = MemoryTarget()
    records = [record(n, [insert(n)], commit_time=time) for n, time in enumerate(times)]
    Rig(target, history([0], 3), until=ToTime(20)).accept(table(log(*records)))
    assert ids(target) == {0}


def test_a_transaction_within_an_initial_load_ends_the_run_at_its_end() -> None:
    whole = {"shard": "#UNKNOWN", "gtid": None}
    records = [
        record(0, metadata={"snapshot": "begin"}, **whole),
        record(1, [insert(1)], metadata={"snapshot": "rows"}, last_barrier=0, gtid=None),
        record(2, metadata={"snapshot": "end", "gtid_set": f"{UUID}:1-100"}, last_barrier=0, **whole),
        record(3, [insert(3)], gtid=f"{UUID}:101", last_barrier=2),
    ]
    target = MemoryTarget()
    rig = Rig(target, history([0], 3), until=ToGtid(f"{UUID}:7"))
    rig.accept(table(log(*records)))
    assert target.position is not None
    assert (rig.core.done, target.position.seqno, target.position.consistent) == (True, 2, True)


def test_a_mariadb_gtid_missing_in_the_log_ends_before_the_next_of_its_domain() -> None:
    gtids = ["0-1-5", "7-1-50", "0-1-8", "0-1-9"]
    for until, last in (("0-1-8", 2), ("0-1-7", 1)):
        target = MemoryTarget()
        records = [record(n, [insert(n)], gtid=one) for n, one in enumerate(gtids)]
        rig = Rig(target, history([0], 3, gtid_set="0-1-4"), until=ToGtid(until))
        rig.accept(table(log(*records)))
        assert (rig.core.done, target.position and target.position.seqno) == (True, last)


@pytest.mark.parametrize("until", [ToSeqno(Seqno(4)), ToEvent("binlog.000001", 1004), ToTime(COMMITTED + 4)], ids=str)
def test_a_target_beyond_the_stop_condition_is_refused(until: StopCondition) -> None:
    target = MemoryTarget()
    Rig(target, history([0], 5)).accept(table(log(*(record(n, [insert(n)]) for n in range(6)))))
    with pytest.raises(ConfigError) as raised:
        Rig(target, history([0], 5), until=until)
    assert raised.value.where["seqno"] == 5


def test_a_target_that_has_the_transaction_has_reached_it() -> None:
    position = TargetPosition(service="shop", gtid_set=f"{UUID}:1-7")
    assert ToGtid(f"{UUID}:7").reached(position)
    assert not ToGtid(f"{UUID}:8").reached(position)
    assert not ToGtid("0-1-7").reached(position)
    assert not ToGtid("0-1-7").reached(TargetPosition(service="shop"))


def test_the_next_heartbeat_of_a_name_ends_the_run_and_an_applied_one_does_not_count() -> None:
    names = [None, "mine", "other", None, "mine", None]
    values = log(
        *(record(n, [insert(n)], metadata={"heartbeat": name} if name else {}) for n, name in enumerate(names))
    )
    target = MemoryTarget()
    for read, last, done in ((0, 1, True), (3, 4, True), (6, 5, False)):
        rig = Rig(target, history([0], 5), until=ToHeartbeat("mine"))
        assert not rig.core.done
        rig.accept(table(values[read:], offset=read))  # from where the target is
        assert (rig.core.done, target.position and target.position.seqno) == (done, last)
        assert ids(target) == set(range(last + 1))


def test_a_gtid_is_compared_in_the_form_of_the_log() -> None:
    context: Any = None
    option = click.Option(["--to-gtid"])
    assert gtid(context, option, f" {UUID.upper()}:7") == f"{UUID}:7"
    assert gtid(context, option, f"{UUID}:Tag:7") == f"{UUID}:tag:7"
    assert gtid(context, option, "0-1-7") == "0-1-7"
    for wrong in (f"{UUID}:1-7", f"{UUID}:1:7", "0-1-7,1-1-7", "7", "", "0-1"):
        with pytest.raises(click.BadParameter):
            gtid(context, option, wrong)
