"""Numbers and problems of `thl status`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from connector.cli import run as thl
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.kafka.ends import LogEnds
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord, OfflineRequest, PartitionMap
from connector.log.epochs.fork import Range
from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.log.epochs.loads import LoadRequest, LoadState
from connector.log.epochs.newest_load import NewestLoad
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.pending import PendingChecksum
from connector.log.transaction.position import Digest, Finished, Open, PositionRecord, SourcePosition
from connector.mysql.server.replication_status import ReplicationChannel
from connector.status.collect import _with_deleted, applier_status, collect, producer_status
from connector.status.report import (
    ApplierStatus,
    End,
    LagLimits,
    Problem,
    ProducerStatus,
    ServiceState,
    Status,
    as_object,
    as_text,
    problems_of,
)
from connector.status.source import SourceView
from connector.status.trepctl import tungsten_names
from connector.targets.position import TargetRow
from connector.targets.signal_table import Request
from connector.targets.target_schema import QUARANTINED, Excluded, LoadContent, Loading
from tests.support.problems import texts

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SECOND = 1_000_000
NOW = 1_000_000 * SECOND


def an_epoch(number: int) -> EpochRecord:
    return EpochRecord(
        epoch=Epoch(number), first_seqno=Seqno(0), source_id="h", server_uuid=UUID, started=0, reason="online"
    )


CONTROL = ControlState(LogRecord(LogId("a" * 32), 0), PartitionMap(1, 1), (an_epoch(1), an_epoch(2)))
POSITION = PositionRecord(
    finished=Finished(
        seqno=Seqno(41), epoch=Epoch(2), event_id="b.000002:100;0", gtid=None, digest=Digest(0, 0, 0),
        start=SourcePosition("b.000002", 4),
    ),
    resume=SourcePosition("b.000002", 100), gtid_set=f"{UUID}:1-10", open=None, tails={0: Seqno(41)},
)  # fmt: skip
SOURCE = SourceView(SourcePosition("b.000003", 200), f"{UUID}:1-13", True, ("b.000002", "b.000003"), 100)
LOADS = InitialLoad()
ENDS = LogEnds(Seqno(5), Seqno(41), NOW - 30 * SECOND)
TARGET = TargetRow("a" * 32, 40, 2, "b.000002:90;0", None, True, NOW - 40 * SECOND, NOW - 39 * SECOND, 3)


def test_producer_behind_has_lag_and_age() -> None:
    found = producer_status(CONTROL, POSITION, ENDS, SOURCE, NOW, settings=LOADS)
    assert found.state is ServiceState.BEHIND
    assert (found.events_behind, found.seconds_behind) == (3, 30.0)
    assert (found.latest_epoch_number, found.restarts) == (2, 1)
    assert (found.minimum_stored_seqno, found.maximum_stored_seqno) == (5, 41)
    # The last write was at most 30 s ago; the file is kept for 100 s after it.
    assert found.seconds_until_purge == 70.0


def test_producer_without_lag_is_online() -> None:
    found = producer_status(CONTROL, replace(POSITION, gtid_set=f"{UUID}:1-13"), ENDS, SOURCE, NOW, settings=LOADS)
    assert (found.state, found.events_behind, found.seconds_behind) == (ServiceState.ONLINE, 0, 0.0)


def test_producer_without_gtids_is_behind_while_the_source_log_goes_on_beyond_its_position() -> None:
    nameless = replace(SOURCE, gtid_set=None, expire_seconds=0)
    found = producer_status(CONTROL, POSITION, ENDS, nameless, NOW, settings=LOADS)
    assert (found.state, found.events_behind, found.seconds_behind) == (ServiceState.BEHIND, None, 30.0)
    late = replace(ENDS, newest_commit=NOW - 3600 * SECOND)
    found = producer_status(CONTROL, POSITION, late, nameless, NOW, settings=LOADS)
    assert texts(
        problems_of(found, ApplierStatus(state=ServiceState.ONLINE, applied_last_seqno=41), LagLimits(60, 0))
    ) == ["the producer is 3600 s behind (an unknown number of events)"]
    there = replace(POSITION, resume=nameless.end)
    found = producer_status(CONTROL, there, late, nameless, NOW, settings=LOADS)
    assert (found.state, found.events_behind, found.seconds_behind) == (ServiceState.ONLINE, 0, 0.0)


@pytest.mark.parametrize(
    ("read", "silent", "state"),
    [
        (False, 301, ServiceState.OFFLINE),
        (False, 10, ServiceState.LOADING),  # it begins: nothing reads the binary log for some seconds
        (True, 301, ServiceState.LOADING),
    ],
)
def test_initial_load_that_does_not_begin_is_of_a_dead_producer(read: bool, silent: int, state: ServiceState) -> None:
    begun = replace(CONTROL, epochs=(replace(an_epoch(2), started=NOW - silent * SECOND),))
    ends = replace(ENDS, newest_commit=None)
    loading = replace(POSITION, snapshot=True)
    found = producer_status(begun, loading, ends, replace(SOURCE, read=read), NOW, settings=LOADS)
    assert found.state is state


def test_source_that_is_gone_during_an_initial_load_is_not_loading() -> None:
    found = producer_status(CONTROL, replace(POSITION, snapshot=True), ENDS, None, NOW, settings=LOADS)
    assert found.state is ServiceState.UNKNOWN


def test_file_that_is_purged_has_no_time_left() -> None:
    by_hand = replace(SOURCE, files=("b.000003",), expire_seconds=0)
    assert by_hand.seconds_until_purge(POSITION, ENDS.newest_commit, NOW) == 0
    other = replace(by_hand, server_uuid="another")
    named = replace(POSITION, server_uuid=UUID)
    assert other.seconds_until_purge(named, ENDS.newest_commit, NOW) is None  # the file is of the server before
    assert replace(other, server_uuid=UUID).seconds_until_purge(named, ENDS.newest_commit, NOW) == 0


@pytest.mark.parametrize(
    ("because", "shown"),
    [
        ("not wanted\nhere", "not wanted"),
        (f"{QUARANTINED}refused [seqno=4]\nFailing row contains (7, Alice)", f"{QUARANTINED}refused [seqno=4]"),
        (f"{QUARANTINED}Failing row contains (7, Alice)", f"{QUARANTINED}thl_excluded has the cause"),
    ],
)
def test_values_of_rows_are_no_part_of_a_status(because: str, shown: str) -> None:
    excluded = {TableName("shop", "orders"): Excluded(since=Seqno(4), at=0, by="thl apply", reason=because, changes=2)}
    found = applier_status(TARGET, ENDS, NOW, known=True, excluded=excluded)
    assert found.excluded_tables == (f"shop.orders since 4, 2 row changes, by thl apply ({shown})",)


def test_log_whose_events_are_all_deleted_names_what_the_target_lacks() -> None:
    ends = _with_deleted(LogEnds(), Seqno(41), POSITION)
    producer = producer_status(CONTROL, POSITION, ends, SOURCE, NOW, settings=LOADS)
    assert (producer.minimum_stored_seqno, producer.maximum_stored_seqno) == (42, 41)
    applier = applier_status(TARGET, ends, NOW, known=True)
    assert (applier.state, applier.events_behind) == (ServiceState.BEHIND, 1)
    assert texts(problems_of(producer, applier, LagLimits(100, 0))) == [
        "Kafka no longer has event 41, which the target needs next; it has none any more"
    ]
    whole = applier_status(replace(TARGET, seqno=41), ends, NOW, known=True)
    assert (whole.state, problems_of(producer, whole, LagLimits(100, 0))) == (ServiceState.ONLINE, [])
    assert _with_deleted(ENDS, Seqno(4), POSITION) == ENDS
    assert _with_deleted(LogEnds(), NO_SEQNO, None) == LogEnds()


def test_a_target_lacks_what_a_handshake_refuses() -> None:
    """Of event 41 the first fragments are deleted, or it is in a partition whose events are all deleted."""
    ends = _with_deleted(LogEnds(Seqno(39), Seqno(43)), Seqno(41), POSITION)
    producer = producer_status(CONTROL, POSITION, ends, SOURCE, NOW, settings=LOADS)
    for seqno, lacks in ((41, False), (40, True)):
        applier = applier_status(replace(TARGET, seqno=seqno), ends, NOW, known=True)
        found = problems_of(producer, applier, LagLimits(100, 0))
        assert any("Kafka no longer has event 41" in problem for problem in texts(found)) == lacks


def test_producer_not_reading_is_offline() -> None:
    assert (
        producer_status(CONTROL, POSITION, ENDS, replace(SOURCE, read=False), NOW, settings=LOADS).state
        is ServiceState.OFFLINE
    )


def test_offline_request_is_shown_for_its_epoch_only() -> None:
    asked = OfflineRequest(epoch=Epoch(2), asked_at=NOW, asked_by="me@here", reason="an upgrade")
    for request, source, state in (
        (asked, SOURCE, ServiceState.STOPPING),
        (asked, replace(SOURCE, read=False), ServiceState.OFFLINE),
        (replace(asked, offline_at=NOW, seqno=41), replace(SOURCE, read=False), ServiceState.OFFLINE),
    ):
        found = producer_status(replace(CONTROL, offline=request), POSITION, ENDS, source, NOW, settings=LOADS)
        assert (found.state, found.offline_requested_by, found.offline_reason) == (state, "me@here", "an upgrade")
    earlier = replace(CONTROL, offline=replace(asked, epoch=Epoch(1)))
    found = producer_status(earlier, POSITION, ENDS, SOURCE, NOW, settings=LOADS)
    assert (found.state, found.offline_requested_by, found.offline_reason) == (ServiceState.BEHIND, "", "")


def test_unavailable_source_leaves_other_numbers() -> None:
    found = producer_status(CONTROL, POSITION, ENDS, None, NOW, settings=LOADS)
    assert (found.state, found.maximum_stored_seqno, found.events_behind) == (ServiceState.UNKNOWN, 41, None)


def test_missing_log_is_none_and_missing_broker_unknown() -> None:
    empty = ControlState(None, None, ())
    assert producer_status(empty, None, LogEnds(), SOURCE, NOW, settings=LOADS).state is ServiceState.NONE
    assert producer_status(None, None, LogEnds(), SOURCE, NOW, settings=LOADS).state is ServiceState.UNKNOWN


def test_initial_load_and_unfinished_event_are_shown() -> None:
    loading = replace(POSITION, snapshot=True, open=Open(Seqno(42), 0, 0), prepared=PendingChecksum(2, 7))
    found = producer_status(CONTROL, loading, ENDS, SOURCE, NOW, settings=LOADS)
    assert (found.state, found.unfinished, found.prepared) == (ServiceState.LOADING, True, 2)


@pytest.mark.parametrize(
    ("file", "last_commit", "expire", "left"),
    [
        ("b.000003", NOW, 100, 100.0),  # the newest file is never purged
        ("b.000002", NOW - 30 * SECOND, 100, 70.0),
        ("b.000002", NOW - 130 * SECOND, 100, -30.0),
        ("b.000001", NOW, 100, 0.0),  # purged already
        ("b.000002", NOW, 0, None),
        ("b.000002", None, 100, None),
    ],
)
def test_seconds_until_purge(file: str, last_commit: int | None, expire: int, left: float | None) -> None:
    position = replace(POSITION, resume=SourcePosition(file, 100))
    assert replace(SOURCE, expire_seconds=expire).seconds_until_purge(position, last_commit, NOW) == left


def asked(table: str, *, cancel: bool = False) -> dict[TableName, LoadRequest]:
    name = TableName("shop", table)
    return {name: LoadRequest(table=name, load="a", asked_at=1, asked_by="me@here", cancel=cancel)}


def test_load_under_way_shows_why_it_pauses_by_the_settings_of_this_service() -> None:
    lagging = replace(SOURCE, channels=(ReplicationChannel("", "db0:3306", 99.0, ""),))

    def cause(control: ControlState, source: SourceView | None, **settings: float | None) -> PauseCause | None:
        loads = InitialLoad(**{"max_replica_lag": 10.0, "min_until_purge": 60.0, **settings})  # type: ignore[arg-type]
        found = producer_status(control, POSITION, ENDS, source, NOW, settings=loads).load_pause
        return None if found is None else found.cause

    loading = replace(CONTROL, load_requests=asked("t"))
    assert cause(loading, lagging) is PauseCause.REPLICA_LAG
    assert cause(loading, lagging, max_replica_lag=100) is PauseCause.BEHIND  # b.000002 of b.000003
    assert cause(loading, lagging, min_until_purge=71) is PauseCause.PURGE
    assert cause(loading, replace(SOURCE, end=POSITION.resume)) is None
    assert cause(loading, None) is None
    assert cause(CONTROL, lagging) is None  # nothing is loaded
    assert cause(replace(CONTROL, load_requests=asked("t", cancel=True)), lagging) is None


def test_stream_that_catches_up_during_a_load_is_no_problem() -> None:
    behind = LoadPause(PauseCause.BEHIND, "the stream is behind")
    assert problems_of(replace(WELL[0], load_pause=behind), WELL[1], LagLimits()) == []


def test_pause_of_a_load_is_printed_as_text_and_as_an_object() -> None:
    status = Status("shop", replace(WELL[0], load_pause=LAGS), WELL[1])
    assert "loadPause             : replica_lag: the source lags 99 s" in as_text(status)
    producer = as_object(status)["producer"]
    assert isinstance(producer, dict)
    assert producer["loadPause"] == {"cause": "replica_lag", "why": "the source lags 99 s", "remedy": "wait"}


def test_applier_behind_has_lag_and_age() -> None:
    found = applier_status(TARGET, ENDS, NOW, known=True)
    assert (found.state, found.events_behind, found.seconds_behind) == (ServiceState.BEHIND, 1, 40.0)
    assert (found.applied_latency, found.relative_latency, found.restarts) == (1.0, 40.0, 2)


def test_applier_without_lag_is_online() -> None:
    found = applier_status(replace(TARGET, seqno=41), ENDS, NOW, known=True)
    assert (found.state, found.events_behind, found.seconds_behind) == (ServiceState.ONLINE, 0, 0.0)


@pytest.mark.parametrize(
    ("seqno", "state", "behind"),
    [(30, ServiceState.BEHIND, 6), (38, ServiceState.ONLINE, 0), (41, ServiceState.ONLINE, 0)],
)
def test_trapped_events_are_no_lag(seqno: int, state: ServiceState, behind: int) -> None:
    trapped = [Range(Seqno(10), Seqno(12)), Range(Seqno(33), Seqno(34)), Range(Seqno(39), Seqno(41))]
    found = applier_status(replace(TARGET, seqno=seqno), ENDS, NOW, known=True, trapped=trapped)
    assert (found.state, found.events_behind) == (state, behind)
    assert found.seconds_behind == (40.0 if behind else 0.0)


def test_applier_states_without_consistent_target() -> None:
    assert applier_status(replace(TARGET, consistent=False), ENDS, NOW, known=True).state is ServiceState.LOADING
    channels = replace(TARGET, consistent=False, reasons=("channels",))
    assert applier_status(channels, ENDS, NOW, known=True).state is ServiceState.BEHIND
    both = replace(channels, reasons=("channels", "load"))
    assert applier_status(both, ENDS, NOW, known=True).state is ServiceState.LOADING
    claimed = applier_status(replace(TARGET, seqno=-1), ENDS, NOW, known=True)
    assert (claimed.state, claimed.consistent) == (ServiceState.LOADING, False)
    assert applier_status(None, ENDS, NOW, known=True).state is ServiceState.NONE
    assert applier_status(None, ENDS, NOW, known=False).state is ServiceState.UNKNOWN


@pytest.mark.parametrize(
    ("consistent", "state", "shown"),
    [
        (True, LoadContent.NEW, "shop.orders since 7 (1970-01-12T13:46:40+00:00)"),
        (True, LoadContent.AWAITS_ROWS, "shop.orders since 7 (1970-01-12T13:46:40+00:00), waits for its rows"),
        (False, LoadContent.MARKED, "shop.orders since 7 (1970-01-12T13:46:40+00:00)"),
    ],
)
def test_tables_that_are_loaded_are_named(consistent: bool, state: LoadContent, shown: str) -> None:
    entry = Loading(load="l1", since=Seqno(7), at=NOW, state=state, consistent=consistent)
    target = replace(TARGET, consistent=False, reasons=("load",))
    found = applier_status(target, ENDS, NOW, known=True, loading={TableName("shop", "orders"): entry})
    assert found.state is (ServiceState.BEHIND if consistent else ServiceState.LOADING)
    assert found.loading_tables == (shown,)
    assert f"table is being loaded: {shown}" in texts(problems_of(WELL[0], found, LagLimits()))


@pytest.mark.parametrize(
    ("state", "ended"), [(LoadState.CANCELLED, True), (LoadState.STOPPED, True), (LoadState.LOADING, False)]
)
def test_table_whose_load_was_ended_is_not_said_to_be_loaded_for_ever(state: LoadState, ended: bool) -> None:
    name, in_log = TableName("shop", "orders"), TableName("lake", "orders")
    entry = Loading(load="l1", since=Seqno(7), at=NOW, state=LoadContent.MARKED, consistent=False)
    load = NewestLoad(table=name, in_log=in_log, load="l1", asked_at=1, targets=(), state=state)
    found = applier_status(TARGET, ENDS, NOW, known=True, loading={in_log: entry}, loads={in_log: load})
    (shown,) = found.loading_tables
    assert (f"but the load was {state}" in shown) == ended


@pytest.mark.parametrize(
    ("applier", "request_", "state", "problem"),
    [
        (False, None, ServiceState.OFFLINE, True),
        (False, Request(NOW, "ann@here", "", NOW), ServiceState.OFFLINE, False),
        (False, Request(NOW, "ann@here", "", None), ServiceState.OFFLINE, True),  # it was dead when it was asked
        (True, Request(NOW, "ann@here", "", None), ServiceState.STOPPING, False),
        (True, None, ServiceState.BEHIND, False),
        (None, None, ServiceState.BEHIND, False),
    ],
)
def test_target_without_an_applier_is_a_problem_unless_that_was_asked_for(
    applier: bool | None, request_: Request | None, state: ServiceState, problem: bool
) -> None:
    found = applier_status(replace(TARGET, applier=applier), ENDS, NOW, known=True, request=request_)
    assert found.state is state
    told = "no applier has a session with the target: start `thl apply`"
    assert (told in texts(problems_of(WELL[0], found, LagLimits()))) == problem


WELL = (
    ProducerStatus(state=ServiceState.ONLINE, minimum_stored_seqno=5, seconds_behind=0.0, seconds_until_purge=9999.0),
    ApplierStatus(state=ServiceState.ONLINE, applied_last_seqno=41, seconds_behind=0.0, consistent=True),
)


LAGS = LoadPause(PauseCause.REPLICA_LAG, "the source lags 99 s", "wait")


def test_good_numbers_give_no_problem() -> None:
    assert problems_of(*WELL, LagLimits()) == []


@pytest.mark.parametrize(
    ("producer", "applier", "problem"),
    [
        ({"state": ServiceState.OFFLINE}, {}, "no producer reads"),
        ({"seconds_behind": 61.0, "events_behind": 7}, {}, "the producer is 61 s behind (7 events)"),
        ({}, {"seconds_behind": 3600.0, "events_behind": 9}, "the applier is 3600 s behind (9 events)"),
        ({"seconds_until_purge": 10.0}, {}, "needs next in 10 s"),
        ({"seconds_until_purge": -5.0}, {}, "needs next in 0 s"),
        ({"load_pause": LAGS}, {}, "no round of a load begins: the source lags 99 s"),
        ({}, {"applied_last_seqno": 3}, "Kafka no longer has event 4, which the target needs next; its first is 5"),
        ({}, {"state": ServiceState.LOADING}, "not consistent"),
        ({}, {"state": ServiceState.NONE}, "not consistent"),
    ],
)
def test_exceeded_limit_is_a_problem(producer: dict[str, object], applier: dict[str, object], problem: str) -> None:
    found = problems_of(replace(WELL[0], **producer), replace(WELL[1], **applier), LagLimits())  # type: ignore[arg-type]
    assert len(found) == 1
    assert problem in found[0].text


def test_names_are_those_of_tungsten() -> None:
    status = Status("shop", *WELL, (Problem("one thing", "mend it"),))
    found = as_object(status)
    json.dumps(found)
    assert isinstance(found["applier"], dict)
    assert isinstance(found["producer"], dict)
    assert {"appliedLastSeqno", "appliedLatency", "relativeLatency", "state"} <= found["applier"].keys()
    assert {"latestEpochNumber", "minimumStoredSeqNo", "maximumStoredSeqNo", "state"} <= found["producer"].keys()
    text = as_text(status)
    assert "appliedLastSeqno      : 41\n" in text
    assert text.endswith("problem: one thing\n  remedy: mend it")


def test_trepctl_names_cover_both_ends() -> None:
    config = Config(service="shop", source=Source(host="db"), kafka=Kafka(bootstrap="k:9092"))
    status = Status("shop", replace(WELL[0], maximum_stored_seqno=41, latest_epoch_number=2), WELL[1])
    found = tungsten_names(status, config, 1_700_000_000_123_456)
    json.dumps(found)
    assert found | {"version": ""} == {
        "appliedLastEventId": "NONE",
        "appliedLastSeqno": 41,
        "appliedLatency": -1.0,
        "currentEventId": "NONE",
        "currentTimeMillis": 1_700_000_000_123,
        "latestEpochNumber": 2,
        "maximumStoredSeqNo": 41,
        "minimumStoredSeqNo": 5,
        "pipelineSource": "k:9092/thl.shop",
        "relativeLatency": -1.0,
        "serviceName": "shop",
        "simpleServiceName": "shop",
        "sourceId": "db:3306",
        "state": "ONLINE",
        "version": "",
    }
    assert not found.keys() & as_object(status).keys() - {"serviceName"}


@pytest.mark.parametrize(
    ("producer", "applier", "state"),
    [
        (ServiceState.ONLINE, ServiceState.BEHIND, "ONLINE"),
        (ServiceState.BEHIND, ServiceState.ONLINE, "ONLINE"),
        (ServiceState.OFFLINE, ServiceState.ONLINE, "OFFLINE:NORMAL"),
        (ServiceState.ONLINE, ServiceState.NONE, "OFFLINE:NORMAL"),
        (ServiceState.ONLINE, ServiceState.LOADING, "GOING-ONLINE:SNAPSHOT"),
        (ServiceState.UNKNOWN, ServiceState.ONLINE, "UNKNOWN"),
    ],
)
def test_trepctl_state_is_the_worse_one(producer: ServiceState, applier: ServiceState, state: str) -> None:
    status = Status("shop", replace(WELL[0], state=producer), replace(WELL[1], state=applier))
    assert tungsten_names(status, Config(), 0)["state"] == state


def test_command_prints_both_kinds_of_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    well = Status("shop", *WELL)
    monkeypatch.setattr("connector.status.collect.collect", lambda config, limits, ends: well)
    assert thl(["status", "--format", "json", "--set", "service=shop"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["appliedLastSeqno"], found["applier"]["appliedLastSeqno"], found["problems"]) == (41, 41, [])
    monkeypatch.setattr(
        "connector.status.collect.collect", lambda config, limits, ends: replace(well, problems=(Problem("oh"),))
    )
    assert thl(["status", "--format", "json"]) == 1


def test_service_without_log_is_a_problem() -> None:
    found = producer_status(ControlState(None, None, ()), None, LogEnds(), SOURCE, NOW, settings=LOADS)
    assert found.state is ServiceState.NONE
    assert "there is no log" in problems_of(found, WELL[1], LagLimits())[0].text


@pytest.mark.parametrize(
    ("ends", "asked"),
    [(End.TARGET, ["kafka", "target"]), (End.PRODUCER, ["kafka", "source"]), (None, ["kafka", "source", "target"])],
)
def test_only_servers_of_the_chosen_end_are_asked(ends: End | None, asked: list[str]) -> None:
    """Each is configured so that asking it is an error of its own, without a server."""
    config = Config.model_validate(
        {
            "kafka": {"properties": {"no.such": "kafka"}},
            "source": {"host": "source", "tls": True, "tls_ca": "source/none"},
            "target": {"url": "target://"},
        }
    )
    found = collect(config, LagLimits(), ends=frozenset(End) if ends is None else frozenset((ends,)))
    problems = [problem for problem in texts(found.problems) if "is not consistent" not in problem]
    assert [next(one for one in ("kafka", "source", "target") if one in problem) for problem in problems] == asked
    assert set(as_object(found)) & {"producer", "applier"} == {
        {"kafka": "", "source": "producer", "target": "applier"}[one] for one in asked
    } - {""}


def test_unavailable_target_is_not_reported_as_lacking_deleted_events() -> None:
    producer = replace(WELL[0], minimum_stored_seqno=7)
    assert problems_of(producer, ApplierStatus(state=ServiceState.UNKNOWN), LagLimits()) == []
    assert problems_of(producer, replace(WELL[1], applied_last_seqno=5), LagLimits()) != []
