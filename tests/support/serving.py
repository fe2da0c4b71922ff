"""Readings of services for the tests of `thl serve`, and a server of them."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from flask import Flask
from pydantic import SecretStr

from connector.clock import Clock, SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.config.serve import Serve
from connector.kafka.ends import LogEnds
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord, PartitionMap
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from connector.serve.app import create_app
from connector.serve.guard import Guard
from connector.serve.history import LagHistory
from connector.serve.jobs import Jobs
from connector.serve.services import ServedService, served_services
from connector.serve.watcher import Watcher
from connector.status.collect import Observation
from connector.status.report import (
    ApplierStatus,
    End,
    LagLimits,
    Problem,
    ProducerStatus,
    ServiceState,
    Status,
    problems_of,
)
from connector.targets.position import TargetRow
from tests.support.producing import until

HOSTILE = "<script>alert(1)</script>\u202e\n\"'&{{7*7}}"
"""A table's name that would run in a browser, turn a line round, end a line, or be taken for a template."""
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SECOND = 1_000_000

PRODUCER = ProducerStatus(
    state=ServiceState.ONLINE,
    log_id="a" * 32,
    latest_epoch_number=3,
    restarts=2,
    minimum_stored_seqno=5,
    maximum_stored_seqno=4711,
    last_event_id="binlog.000007:0000000000002081;12",
    resume="binlog.000007:2081",
    current_event_id="binlog.000007:2081",
    events_behind=0,
    seconds_behind=0.0,
    seconds_until_purge=86_000.0,
)
APPLIER = ApplierStatus(
    state=ServiceState.ONLINE,
    applied_last_seqno=4711,
    applied_last_event_id="binlog.000007:0000000000002081;12",
    applied_last_epoch=3,
    applied_latency=0.031,
    relative_latency=2.0,
    events_behind=0,
    seconds_behind=0.0,
    consistent=True,
    restarts=1,
)
ROW = TargetRow("a" * 32, 4711, 3, "binlog.000007:2081;12", None, True, 1, 1, 2, applier=True)


def an_epoch(number: int, reason: str = "online", forked: Forked | None = None) -> EpochRecord:
    return EpochRecord(
        epoch=Epoch(number), first_seqno=Seqno(number * 100), source_id=f"mysql{number}.example:3306", server_uuid=UUID,
        started=1_760_000_000 * SECOND + number, reason=reason, forked=forked,
    )  # fmt: skip


def control(
    requests: Mapping[TableName, LoadRequest] | None = None, loads: Mapping[TableName, TableLoad] | None = None
) -> ControlState:
    fork = Forked(f"{UUID}:7-8", (Range(Seqno(298), Seqno(299)),))
    epochs = (an_epoch(1), an_epoch(2), an_epoch(3, "forked", fork))
    return ControlState(
        LogRecord(LogId("a" * 32), 0), PartitionMap(1, 2), epochs, load_requests=requests or {}, loads=loads or {}
    )


POSITION = PositionRecord(
    finished=Finished(
        seqno=Seqno(4711), epoch=Epoch(3), event_id="binlog.000007:2081;12", gtid=None, digest=Digest(0, 0, 0),
        start=SourcePosition("binlog.000007", 4),
    ),
    resume=SourcePosition("binlog.000007", 2081), gtid_set=None, open=None, tails={0: Seqno(4711)},
)  # fmt: skip


def observation(
    producer: ProducerStatus = PRODUCER,
    applier: ApplierStatus = APPLIER,
    *,
    state: ControlState | None = None,
    problems: tuple[Problem, ...] = (),
    row: TargetRow | None = ROW,
    limits: LagLimits | None = None,
) -> Observation:
    found = (*problems, *problems_of(producer, applier, limits or LagLimits()))
    status = Status("shop", producer, applier, found)
    return Observation(status, state or control(), POSITION, LogEnds(), row)


def troubled() -> Observation:
    """A service with all that the page shows."""
    name = TableName("shop", HOSTILE)
    load = TableLoad(table=TableName("shop", "item"), load="x", state=LoadState.LOADING, rows=1200, estimate=5000)
    stopped = TableLoad(table=name, load="y", state=LoadState.STOPPED, why="ERROR 1054 <b>bold</b>")
    lags = LoadPause(PauseCause.REPLICA_LAG, "the source lags 99 s behind its own source", "wait")
    return observation(
        replace(PRODUCER, state=ServiceState.BEHIND, events_behind=12, seconds_behind=130.0, load_pause=lags,
                seconds_until_purge=1800.0),
        replace(APPLIER, state=ServiceState.OFFLINE, applied_last_seqno=4000, events_behind=711, seconds_behind=700.0,
                excluded_tables=(f"shop.{HOSTILE} since 41, 3 row changes, by thl apply (quarantined: refused)",),
                inconsistent_tables=("shop.orders since 42 (skipped)",), inconsistent_because=("quarantine", "skipped"),
                channels=(4000, 4001)),
        state=control(loads={load.table: load, name: stopped}),
        problems=(Problem("the source does not answer [host=mysql.example]", "start MySQL, or correct source.host"),),
        row=replace(ROW, seqno=4000, applier=False),
    )  # fmt: skip


@dataclass
class Readings:
    """Answers a watcher with the newest observation that a test has put in."""

    now: Observation = field(default_factory=observation)
    of_target: dict[str, Observation] = field(default_factory=dict)
    asked: list[frozenset[End]] = field(default_factory=list)

    def __call__(
        self, config: Config, limits: LagLimits, clock: Clock, *, ends: frozenset[End], measure: bool
    ) -> Observation:
        assert not measure
        self.asked.append(ends)
        return self.of_target.get(config.target.id, self.now)


def config(service: str = "shop", target: str = "", url: str = "postgresql://thl:secret-x@db.example/shop") -> Config:
    return Config(service=service, target=Target(url=SecretStr(url), id=target))


def service(*configs: Config) -> ServedService:
    (found,) = served_services([(Path("shop.yaml"), one) for one in configs or (config(),)])
    return found


def watcher(readings: Readings, settings: Serve | None = None, clock: Clock | None = None, *of: Config) -> Watcher:
    settings = settings or Serve()
    history = LagHistory("shop", settings.history_hours)
    return Watcher(service(*of), settings, clock or SystemClock(), history, readings)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def application(watchers: Sequence[Watcher], settings: Serve, clock: Clock, program: Sequence[str] = ()) -> Flask:
    """The application of some watchers; its buttons run a program."""
    by_name = {one.service.name: one for one in watchers}
    jobs = Jobs((), clock, lambda name, comparison: by_name[name].compared(comparison), program)
    return create_app(watchers, Guard(settings, clock), clock, jobs)


@dataclass
class Answer:
    """An answer of the server."""

    status: int
    text: str
    headers: Mapping[str, str]


def ask(port: int, path: str, *, host: str | None = None, data: bytes | None = None, **headers: str) -> Answer:
    """Send one request to a server on this machine; redirects are not followed."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=named)
    if host is not None:
        request.add_unredirected_header("Host", host)

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(request, timeout=10) as answer:
            return Answer(answer.status, answer.read().decode(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read().decode(), dict(error.headers))


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def serving(*services: ServedService, settings: Serve) -> Iterator[int]:
    """Run the server, in a thread, while in the context; yields its port, at which it listens."""
    from connector.serve.server import serve

    stop = Event()
    thread = Thread(target=serve, args=(services, settings, SystemClock(), stop))
    thread.start()
    try:
        until(lambda: listens(settings.port))
        yield settings.port
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()
