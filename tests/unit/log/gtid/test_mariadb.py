"""MariaDB's positions against the list of GTIDs that a log with growing numbers gave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import HistoriesDiffer, Unsupported
from connector.log.epochs.control import EpochRecord
from connector.log.gtid.gtid_range import GtidRange
from connector.log.gtid.mariadb import DomainGtid, DomainPosition
from connector.log.gtid.mysql import GtidSet
from connector.log.gtid.source_gtids import lacking, of_mariadb, parse_gtids
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.writing.trapped import check_source

steps = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 3)), max_size=30)


def log_of(made: list[tuple[int, int, int]]) -> list[str]:
    """GTIDs in a log's order: a domain's numbers only grow, with holes, whichever server writes."""
    last: dict[int, int] = {}
    log = []
    for domain, server, step in made:
        last[domain] = last.get(domain, 0) + step
        log.append(f"{domain}-{server}-{last[domain]}")
    return log


def position_of(log: list[str]) -> DomainPosition:
    position = DomainPosition()
    for gtid in log:
        position.add(gtid)
    return position


def state_of(log: list[str]) -> str:
    """As gtid_binlog_state: the last of each server in each domain."""
    last = {gtid.rpartition("-")[0]: gtid for gtid in log}
    return ",".join(last.values())


@given(steps, st.integers(0, 30))
def test_position_contains_everything_before_it_and_nothing_after_it(made: list[tuple[int, int, int]], at: int) -> None:
    log = log_of(made)
    position = position_of(log[:at])
    assert all(gtid in position for gtid in log[:at])
    assert not any(gtid in position for gtid in log[at:])
    assert [str(last) for last in position] == [
        [gtid for gtid in log[:at] if gtid.startswith(f"{domain}-")][-1]
        for domain in sorted({int(gtid.split("-")[0]) for gtid in log[:at]})
    ]
    assert DomainPosition.parse(str(position)) == position == position.copy()
    assert bool(position) == bool(log[:at])


@given(steps, st.data())
def test_adding_a_contained_gtid_changes_nothing(made: list[tuple[int, int, int]], data: st.DataObject) -> None:
    log = log_of(made)
    position = position_of(log)
    for gtid in data.draw(st.lists(st.sampled_from(log), max_size=5)) if log else []:
        position.add(gtid)
    assert position == position_of(log)


@given(steps, st.data())
def test_removing_a_gtid_keeps_those_before_it(made: list[tuple[int, int, int]], data: st.DataObject) -> None:
    log = log_of(made)
    if not log:
        return
    at = data.draw(st.integers(0, len(log) - 1))
    position = position_of(log)
    position.remove(log[at])
    domain = log[at].split("-")[0]
    behind = [gtid for gtid in log[at:] if gtid.split("-")[0] == domain]
    assert not any(gtid in position for gtid in behind)
    # What is before it is in, unless another server wrote it: then a server is asked for what comes after a number
    # that no server has, which it finds by the place of the next one.
    same = [gtid for gtid in log[:at] if gtid.rpartition("-")[0] == log[at].rpartition("-")[0]]
    assert all(gtid in position for gtid in same)
    assert all(gtid in position for gtid in log if gtid.split("-")[0] != domain)


@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_source_lacks_gtids_after_its_position(made: list[tuple[int, int, int]], one: int, other: int) -> None:
    log = log_of(made)
    logged, source = log[:one], log[:other]
    missing = position_of(logged) - DomainPosition.parse(state_of(source))
    assert bool(missing) == (len(logged) > len(source))
    assert position_of(logged).issubset(DomainPosition.parse(state_of(source))) == (len(logged) <= len(source))
    assert missing.count() >= len(logged[len(source) :])


def test_same_number_of_another_server_is_missing() -> None:
    """The old server wrote 101, which the new one never got; that wrote its own, and went on."""
    missing = DomainPosition.parse("0-1-101") - DomainPosition.parse("0-1-100,0-2-103")
    assert (str(missing), missing.count()) == ("0-1-101", 1)
    missing = DomainPosition.parse("0-1-101,7-1-5") - DomainPosition.parse("0-2-101")
    assert (str(missing), missing.count()) == ("0-1-101,7-1-1..5", 6)
    assert str(DomainPosition.parse("0-1-104") - DomainPosition.parse("0-1-100")) == "0-1-101..104"
    assert not DomainPosition.parse("0-1-0") - DomainPosition()
    assert "0-1-101" not in DomainPosition.parse("0-1-100,0-2-103")
    assert "0-3-101" in DomainPosition.parse("0-1-100,0-2-103")


def test_consecutive_gtids_are_added_at_once() -> None:
    position = DomainPosition.parse("0-2-0")
    assert (str(position), bool(position), position.count()) == ("0-2-0", False, 0)
    position.add("0-2-1", 5)
    position.add("4294967295-1-18446744073709551615")
    assert str(position) == "0-2-5,4294967295-1-18446744073709551615"
    with pytest.raises(Unsupported):
        position.add("1-1-18446744073709551615", 2)


@pytest.mark.parametrize("text", ["0-1", "0-1-2-3", "a-1-2", "0-1-", "4294967296-1-1", "0-1-18446744073709551616", "x"])
def test_malformed_gtid_is_refused(text: str) -> None:
    with pytest.raises(Unsupported) as refused:
        DomainGtid.parse(text)
    assert refused.value.where == {"gtid": text}
    with pytest.raises(Unsupported):
        DomainPosition.parse(text)


def test_form_of_the_text_decides_between_mysql_and_mariadb() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert all(map(of_mariadb, ["0-1-2", " 0-1-2, 7-1-3 "]))
    assert not any(map(of_mariadb, ["", f"{uuid}:1-5", "12345678-1234-1234-1234-123456789012:1", "0-1"]))
    assert isinstance(parse_gtids("0-1-2"), DomainPosition)
    assert isinstance(parse_gtids(f"{uuid}:1-5"), GtidSet)
    assert isinstance(parse_gtids(""), GtidSet)


def test_gtids_of_mysql_and_mariadb_are_not_compared() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    for wanted, there in [("0-1-2", f"{uuid}:1-5"), (f"{uuid}:1-5", "0-1-2"), ("0-1-2", "")]:
        with pytest.raises(HistoriesDiffer) as refused:
            lacking(wanted, there)
        assert refused.value.where == {"expected": wanted, "found": there}
    assert not lacking("", "0-1-2")
    assert not lacking("0-1-0", f"{uuid}:1-5")
    assert lacking(f"{uuid}:1-5", f"{uuid}:1-3").count() == 2


def test_trapped_transactions_are_listed() -> None:
    record = PositionRecord(
        finished=None, resume=SourcePosition("m.000001", 4), gtid_set="0-1-101,7-1-3", open=None, tails={0: Seqno(-1)}
    )
    epoch = EpochRecord(
        epoch=Epoch(1), first_seqno=Seqno(0), source_id="h:1", server_uuid="mariadb-1", started=0, reason="online",
        gtid_set=None,
    )  # fmt: skip
    check_source(record, epoch, server_uuid="mariadb-2", executed="0-1-101,0-2-102,7-1-3")
    with pytest.raises(HistoriesDiffer) as told:
        check_source(record, epoch, server_uuid="mariadb-2", executed="0-1-100,0-2-102,7-1-3")
    assert told.value.where["trapped"] == "0-1-101"
    with pytest.raises(HistoriesDiffer) as told:
        check_source(replace(record, gtid_set="0-1-1"), epoch, server_uuid="u", executed="")
    assert told.value.where == {"expected": "0-1-1", "found": ""}


def test_range_of_gtids_is_counted() -> None:
    run = GtidRange()
    run.begin("0-1-9")
    assert run.goes_on("0-1-10")
    assert not run.goes_on("0-1-10")
    assert not run.goes_on("0-2-11")
    assert not run.goes_on("10-1-11")
    assert run.goes_on("0-1-11")
    assert (run.first, run.count) == ("0-1-9", 3)
