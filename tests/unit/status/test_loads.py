"""What `thl load --status` prints of loads, and of what they wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.log.epochs.loads import LoadState
from connector.log.epochs.newest_load import WAITING, NewestLoad
from connector.log.transaction.layout import TableName
from connector.status.loads import LoadsStatus
from connector.status.report import ApplierStatus, End, Problem, ProducerStatus, ServiceState, Status

NAME: Final = TableName("shop", "t")
LOADING: Final = NewestLoad(
    table=NAME, in_log=NAME, load="a1", asked_at=1, targets=("lake",), state=LoadState.LOADING, rows=50, estimate=99
)
ENDED: Final = replace(LOADING, table=TableName("shop", "u"), state=LoadState.ENDED, targets=())
PAUSE: Final = LoadPause(PauseCause.REPLICA_STOPPED, "the source does not replicate", "START REPLICA")
PRODUCER: Final = ProducerStatus(state=ServiceState.ONLINE, seconds_until_purge=70.4, resume="b.000002:100")


def shown(producer: ProducerStatus | None, *loads: NewestLoad, problems: tuple[Problem, ...] = ()) -> LoadsStatus:
    applier = ApplierStatus(state=ServiceState.UNKNOWN)
    status = None if producer is None else Status("shop", producer, applier, problems, frozenset({End.PRODUCER}))
    return LoadsStatus(loads, status)


def test_loads_under_way_are_followed_by_their_pause_and_the_time_until_the_purge() -> None:
    assert shown(replace(PRODUCER, load_pause=PAUSE), LOADING, ENDED).as_text().splitlines() == [
        "shop.t on lake: loading, 50 rows of about 99",
        "shop.u: ended, 50 rows of about 99",
        "no round of a load begins: the source does not replicate",
        "-> START REPLICA",
        "the source keeps the file that the producer needs next for 70 s at least (b.000002:100)",
    ]


def test_loads_that_have_ended_ask_nothing() -> None:
    assert shown(None, ENDED).as_text() == "shop.u: ended, 50 rows of about 99"
    assert shown(None).as_text() == "no table was loaded, and none was asked for"


def test_missing_producer_and_unknown_source_are_told() -> None:
    waiting = replace(LOADING, state=WAITING, rows=None)
    offline = replace(PRODUCER, state=ServiceState.OFFLINE, seconds_until_purge=None)
    assert shown(offline, waiting).as_text().splitlines()[1:] == [
        "no producer reads the source's binary log: loads go on once `thl produce` is started",
        "the source does not purge its binary log by itself, or it is not known when",
    ]
    unknown = shown(
        replace(PRODUCER, state=ServiceState.UNKNOWN), waiting, problems=(Problem("the source does not answer"),)
    )
    assert unknown.as_text().splitlines()[1:] == ["it is not known whether loads pause: the source does not answer"]


def test_objects_of_loads_under_way_have_the_pause() -> None:
    loading, ended = shown(replace(PRODUCER, load_pause=PAUSE), LOADING, ENDED).as_objects()
    assert loading["pause"] == {
        "cause": "replica_stopped", "why": "the source does not replicate", "remedy": "START REPLICA",
    }  # fmt: skip
    assert (loading["producer"], loading["seconds_until_purge"]) == ("ONLINE", 70.4)
    assert (ended["pause"], ended["producer"], ended["seconds_until_purge"]) == (None, None, None)


def test_name_of_a_table_begins_no_line() -> None:
    odd = replace(ENDED, table=TableName("shop", "t\nno round of a load begins"))
    assert len(shown(None, odd).as_text().splitlines()) == 1
