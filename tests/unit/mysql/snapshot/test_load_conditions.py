"""What of the source keeps a round of loads from beginning."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connector.config.snapshot import InitialLoad
from connector.log.epochs.load_pause import MOST_BEHIND, LoadPause, PauseCause, stream_behind
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.server.replication_status import ReplicationChannel
from connector.mysql.snapshot.load_conditions import LoadConditions, last_known_write

OLD, NEW = SourcePosition("b.000002", 500), SourcePosition("b.000003", 600)


def channel(lag: float | None, name: str = "") -> ReplicationChannel:
    return ReplicationChannel(name, "db0:3306", lag, "Replica_IO_Running: Yes, Replica_SQL_Running: No")


def pause(
    read: SourcePosition = NEW,
    until_purge: float | None = None,
    channels: Sequence[ReplicationChannel] = (),
    *,
    least: float | None = 100.0,
    most: float | None = 10.0,
) -> LoadPause | None:
    settings = InitialLoad(min_until_purge=least, max_replica_lag=most)
    return LoadConditions(read, NEW, until_purge, channels).pause(settings)


def cause(found: LoadPause | None) -> PauseCause | None:
    return None if found is None else found.cause


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        ([], None),
        ([0.0], None),
        ([10.0], None),
        ([10.5], PauseCause.REPLICA_LAG),
        ([1.0, 99.0, 2.0], PauseCause.REPLICA_LAG),
        ([None], PauseCause.REPLICA_STOPPED),
        ([0.0, None], PauseCause.REPLICA_STOPPED),
        ([99.0, None], PauseCause.REPLICA_STOPPED),
    ],
)
def test_worst_channel_decides_on_lag(lags: list[float | None], expected: PauseCause | None) -> None:
    channels = [channel(lag, f"c{number}") for number, lag in enumerate(lags)]
    assert cause(pause(channels=channels)) == expected
    assert pause(channels=channels, most=None) is None


def test_lag_names_its_channel_and_a_stopped_one_its_threads_and_the_remedy() -> None:
    found = pause(channels=[channel(3.0, "near"), channel(99.0, "far")])
    assert found is not None
    assert "99 s behind its own source, db0:3306, channel far (source.snapshot.max_replica_lag is 10)" in found.why
    found = pause(channels=[channel(None, "gone")])
    assert found is not None
    assert "channel gone does not run (Replica_IO_Running: Yes, Replica_SQL_Running: No)" in found.why
    assert "START REPLICA" in found.hint


@pytest.mark.parametrize(
    ("read", "until_purge", "least", "expected"),
    [
        (NEW, 5.0, 100.0, None),  # the newest file is not purged
        (OLD, 100.0, 100.0, PauseCause.BEHIND),
        (OLD, 99.0, 100.0, PauseCause.PURGE),
        (OLD, -7.0, 100.0, PauseCause.PURGE),
        (OLD, None, 100.0, PauseCause.BEHIND),
        (OLD, 5.0, None, PauseCause.BEHIND),
    ],
)
def test_stream_in_a_file_that_is_purged_soon_pauses_loads(
    read: SourcePosition, until_purge: float | None, least: float | None, expected: PauseCause | None
) -> None:
    assert cause(pause(read, until_purge, least=least)) == expected


def test_danger_of_a_purge_is_told_before_lag() -> None:
    found = pause(OLD, 20.0, [channel(None)])
    assert found is not None
    assert found.cause is PauseCause.PURGE
    assert "the stream is in b.000002, and the source, whose log ends in b.000003, may purge it in 20 s" in found.why
    assert not found.ordinary


def test_stream_that_only_catches_up_is_ordinary() -> None:
    found = pause(OLD)
    assert found is not None
    assert found.ordinary
    assert stream_behind(SourcePosition("b.000003", 4), SourcePosition("b.000003", 5 + MOST_BEHIND)) is not None
    assert stream_behind(SourcePosition("b.000003", 4), SourcePosition("b.000003", 4 + MOST_BEHIND)) is None


@pytest.mark.parametrize(
    ("created", "newest", "known"),
    [(0, None, None), (7, None, 7_000_000), (7, 9_000_001, 9_000_001), (7, 5, 7_000_000)],
)
def test_last_write_of_a_file_is_that_of_its_creation_or_of_a_later_event(
    created: int, newest: int | None, known: int | None
) -> None:
    position = PositionRecord(finished=None, resume=OLD, gtid_set=None, open=None, tails={}, created=created)
    assert last_known_write(position, newest) == known
