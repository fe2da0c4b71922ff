"""Declares every metric, once, with its meaning, and serves them for Prometheus.

docs/metrics.md is generated from these declarations: `python -m connector.metrics > docs/metrics.md`.
"""

from __future__ import annotations

import logging
import math
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, make_wsgi_app, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from connector.addresses import on_this_machine
from connector.errors import ConfigError
from connector.health import Answer, ProcessHealth

if TYPE_CHECKING:
    from connector.config.model import Metrics

LOG: Final = logging.getLogger(__name__)
CLIENT_SECONDS: Final = 10.0  # in which a client has to ask
LATENCY: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)


@dataclass(frozen=True, slots=True)
class Declared:
    """A metric as the documentation lists it.

    Args:
        command: the command that serves it.
        name: name of the metric in Prometheus.
        kind: counter, gauge or histogram.
        labels: names of the labels.
        meaning: meaning and unit of the value.
        old_name: the name that it had before, or "".
    """

    command: str
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    old_name: str = ""


DECLARED: Final[list[Declared]] = []


def _counter(command: str, name: str, meaning: str, *labels: str) -> Counter:
    DECLARED.append(Declared(command, f"{name}_total", "counter", ("service", *labels), meaning))
    return Counter(name, meaning, ["service", *labels])


def _gauge(command: str, name: str, meaning: str, *labels: str, old_name: str = "") -> Gauge:
    DECLARED.append(Declared(command, name, "gauge", ("service", *labels), meaning, old_name))
    return Gauge(name, meaning, ["service", *labels])


def _histogram(command: str, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
    DECLARED.append(Declared(command, name, "histogram", ("service",), meaning))
    return Histogram(name, meaning, ["service"], buckets=buckets)


def _fact(name: str, meaning: str, *labels: str) -> Declared:
    """Declare a gauge that `thl serve` computes from its newest readings when it is asked."""
    DECLARED.append(Declared(_S, name, "gauge", ("service", *labels), meaning))
    return DECLARED[-1]


def _info(command: str, name: str, meaning: str, *labels: str) -> Gauge:
    DECLARED.append(Declared(command, name, "gauge", labels, meaning))
    return Gauge(name, meaning, labels)


_P, _A, _V, _S = "thl produce", "thl apply", "thl verify --every", "thl serve"

build_info = _info(
    f"{_P}, {_A}, {_V}, {_S}",
    "thl_build_info",
    "1, with the versions of this program and of Python",
    "version",
    "python",
)
published_events = _counter(_P, "thl_published_events", "Events whose last fragment is committed to Kafka")
published_rows = _counter(_P, "thl_published_rows", "Row changes of published events")
published_bytes = _counter(_P, "thl_published_bytes", "Encoded bytes of published fragments")
published_table_rows = _counter(
    _P,
    "thl_published_table_rows",
    "Row changes of published events by table, by its name in the log, those of loads too; of tables beyond "
    "metrics.tables, with empty names, together",
    "schema",
    "table",
)
published_table_bytes = _counter(
    _P, "thl_published_table_bytes", "Encoded bytes of the row images of the same", "schema", "table"
)
published_seqno = _gauge(_P, "thl_published_seqno", "Seqno of the last event that is complete in Kafka")
published_latency = _histogram(
    _P, "thl_published_latency_seconds", "Seconds from commit on the source to commit to Kafka", LATENCY
)
kafka_commit = _histogram(
    _P, "thl_kafka_commit_seconds", "Seconds that a Kafka transaction takes to commit", Histogram.DEFAULT_BUCKETS
)
epoch = _gauge(_P, "thl_epoch", "Epoch of the producer")
ignored_events = _counter(_P, "thl_ignored_binlog_events", "Binary log events that carry nothing to publish", "type")
ignored_transactions = _counter(
    _P,
    "thl_ignored_transactions",
    "Transactions not published because of the server ID that wrote them (source.ignore_server_ids)",
    "server_id",
)
prepared_transactions = _gauge(_P, "thl_prepared_transactions", "XA transactions that are prepared and undecided")
prepared_since = _gauge(
    _P, "thl_prepared_since_seconds", "Unix time at which the oldest of them was prepared; 0: there is none"
)
replica_lagging_since = _gauge(
    _P,
    "thl_replica_lagging_since_seconds",
    "Unix time since which publication waits for a replica of publish.wait_for; 0: it does not wait",
    "replica",
    old_name="thl_publication_held_since_seconds",
)
semi_sync_on = _gauge(
    _P,
    "thl_semi_sync_on",
    "With source.semi_sync: 1 while commits on the source wait until Kafka has them, 0 while they do not; NaN: unknown",
)
semi_sync_not_waited = _gauge(
    _P,
    "thl_semi_sync_not_waited",
    "With source.semi_sync: commits on the source that did not wait for an acknowledgement, since the source's start",
)
load_paused_since = _gauge(
    _P,
    "thl_load_paused_since_seconds",
    "Unix time since which no round of a load begins, by cause: purge, replica_lag, replica_stopped, or behind (the "
    "stream catches up, as after each round under many writes); 0: it is not that",
    "cause",
)
records_size = _gauge(_P, "thl_records_size_bytes", "With source.records.dir: bytes of the record store's files")
records_lookups = _counter(
    _P,
    "thl_records_lookups",
    "Rows looked up in the record store, by where they were found: memory, disk (or the store's cache of its blocks), "
    "nowhere",
    "found",
)
records_lag = _gauge(
    _P,
    "thl_records_lag_events",
    "Events of the log that the record store has still to read before the producer is online; 0 afterwards",
)
records_oldest = _gauge(
    _P, "thl_records_oldest_seqno", "Seqno of the oldest event to which the record store can go back; -1: to its start"
)
restarts = _counter(f"{_P}, {_A}", "thl_restarts", "Restarts of a stage after a transient failure", "stage")
applied_events = _counter(_A, "thl_applied_events", "Events committed on the target")
applied_rows = _counter(_A, "thl_applied_rows", "Row changes of events committed on the target")
applied_seqno = _gauge(_A, "thl_applied_seqno", "Seqno of the last event committed on the target")
excluded_tables = _gauge(
    _A, "thl_excluded_tables", "Tables that are not applied, because they are quarantined or excluded"
)
loading_tables = _gauge(_A, "thl_loading_tables", "Tables of the target that are being loaded")
applied_latency = _histogram(
    _A, "thl_applied_latency_seconds", "Seconds from commit on the source to commit on the target", LATENCY
)
continuous_mode = _gauge(
    _A, "thl_continuous_mode", "1 in continuous mode, 0 in micro-batch mode", old_name="thl_reading_continuously"
)
lag_events = _gauge(
    _A, "thl_lag_events", "Events in the log that are not applied yet; NaN: unknown", old_name="thl_behind_events"
)
catch_up_seconds = _gauge(
    _A,
    "thl_catch_up_seconds",
    "Estimated seconds until the target has caught up, from the rates of the last 30 seconds; NaN: unknown or never",
)
applied_table_rows = _counter(
    _A,
    "thl_applied_table_rows",
    "Row changes of committed events by table, by its name in the log; of tables beyond metrics.tables, with empty "
    "names, together",
    "schema",
    "table",
)
applied_table_bytes = _counter(
    _A, "thl_applied_table_bytes", "Bytes of the net row images of the same, before their conversion", "schema", "table"
)
relay_free = _gauge(_A, "thl_relay_free_bytes", "With relay.dir: bytes that the applier may still write to its disk")
relay_size = _gauge(_A, "thl_relay_size_bytes", "With relay.dir: size of that disk in bytes")
jvm_memory = _gauge(
    _A,
    "thl_jvm_memory_bytes",
    "Memory of the JVM of Spark's driver, read every ten seconds, by area: heap, nonheap (classes and compiled code), "
    "resident (of the process, where the system tells); NaN: unknown",
    "area",
)
jvm_heap_limit = _gauge(_A, "thl_jvm_heap_limit_bytes", "Bytes that its heap may have (apply.heap); NaN: unknown")
jvm_collections = _counter(_A, "thl_jvm_collection_seconds", "Seconds that its garbage collectors have worked")
ignored_ddl = _counter(_A, "thl_ignored_ddl", "DDL statements without effect on rows, not applied", "command")
verified_at = _gauge(_V, "thl_verified_seconds", "Unix time of the last comparison; 0: none yet", "target")
verified_tables = _gauge(_V, "thl_verified_tables", "Tables in the last comparison", "target")
verified_rows = _gauge(_V, "thl_verified_rows", "Rows of the source in the last comparison", "target")
verified_different = _gauge(
    _V, "thl_verified_different_tables", "Tables that differed in the last comparison", "target"
)
verified_not_compared = _gauge(
    _V, "thl_verified_not_compared_tables", "Captured tables that the last comparison could not compare", "target"
)

service_read_at = _fact("thl_service_read_seconds", "Unix time of the newest reading of the service")
service_read_took = _fact("thl_service_read_took_seconds", "Seconds that the newest reading took")
service_read_age = _fact(
    "thl_service_read_age_seconds",
    "Seconds since the newest reading of the service ended; before the first one, since `thl serve` began",
)
service_read_stale = _fact(
    "thl_service_read_stale", "1 if that is so long that the reading no longer counts, and its other metrics are absent"
)
service_problems = _fact("thl_service_problems", "Problems in the newest reading, as `thl status` prints them")
service_producer_up = _fact(
    "thl_service_producer_up", "1 while a producer reads the source's binary log, 0 while none does; NaN: unknown"
)
service_producer_state = _fact(
    "thl_service_producer_state", "1 for the producer's state, as `thl status` names it; 0 for others", "state"
)
service_epoch = _fact("thl_service_epoch", "Newest epoch of the log")
service_producer_restarts = _fact(
    "thl_service_producer_restarts", "Times that a producer went online, or read an event again, after the first"
)
service_first_seqno = _fact(
    "thl_service_first_seqno", "Seqno of the first event that Kafka has, or will have; -1: none was published"
)
service_published_seqno = _fact("thl_service_published_seqno", "Seqno of the log's last finished event; -1: none")
service_producer_lag_events = _fact(
    "thl_service_producer_lag_events", "Transactions of the source that are not in the log; NaN: unknown"
)
service_producer_lag = _fact(
    "thl_service_producer_lag_seconds",
    "Age of the log's last finished event while the source has transactions that the log lacks, at most the time since "
    "a reading saw none, else 0; NaN: unknown",
)
service_purge = _fact(
    "thl_service_seconds_until_purge",
    "Least seconds until the source purges the binary log file that is needed next; +Inf: never, or unknown",
)
service_prepared = _fact("thl_service_prepared_transactions", "XA transactions that are prepared and undecided")
service_prepared_since = _fact(
    "thl_service_prepared_since_seconds", "Unix time at which the oldest of them was prepared; 0: none, or unknown"
)
service_trapped = _fact("thl_service_trapped_events", "Events of the log that the source does not have")
service_loads = _fact("thl_service_loads_under_way", "Loads of tables that were asked for and have not ended")
service_load_paused = _fact(
    "thl_service_load_paused", "1 while no round of a load begins, by cause; the cause behind is no problem", "cause"
)
service_semi_sync = _fact(
    "thl_service_semi_sync_on", "With source.semi_sync: 1 while commits on the source wait until Kafka has them, else 0"
)
service_applier_up = _fact(
    "thl_service_applier_up",
    "1 while an applier has a session with the target, 0 while none has or nothing was applied; NaN: unknown, as for "
    "SQLite and DuckDB",
    "target",
)
service_applier_state = _fact(
    "thl_service_applier_state", "1 for the applier's state, as `thl status` names it; 0 for others", "target", "state"
)
service_applied_seqno = _fact("thl_service_applied_seqno", "Seqno of the last event on the target; -1: none", "target")
service_applier_restarts = _fact(
    "thl_service_applier_restarts", "Times that an applier claimed the target after the first", "target"
)
service_applier_lag_events = _fact(
    "thl_service_applier_lag_events", "Events of the log that are not applied yet; NaN: unknown", "target"
)
service_applier_lag = _fact(
    "thl_service_applier_lag_seconds",
    "Seconds since the commit on the source of the last applied event while events are missing, at most the time since "
    "a reading saw none missing, else 0; NaN: unknown",
    "target",
)
service_applied_latency = _fact(
    "thl_service_applied_latency_seconds",
    "Seconds from the last applied event's commit on the source to its commit on the target; NaN: unknown",
    "target",
)
service_applied_rate = _fact(
    "thl_service_applied_events_per_second",
    "Events applied per second, over the last 30 seconds; NaN: unknown",
    "target",
)
service_catch_up = _fact(
    "thl_service_catch_up_seconds",
    "Estimated seconds until every event is applied, from the rates of the last 30 seconds; NaN: unknown or never",
    "target",
)
service_consistent = _fact(
    "thl_service_consistent", "1 if the target shows the source's state at its seqno, else 0; NaN: unknown", "target"
)
service_inconsistent_because = _fact(
    "thl_service_inconsistent_because",
    "1 for each reason for which readers of the target may see what the source never showed: channels, load, rewind, "
    "quarantine, skipped",
    "target",
    "cause",
)
service_tables = _fact(
    "thl_service_tables",
    "Tables of the target that are quarantined or excluded, may differ, or are being loaded, by state: excluded, "
    "inconsistent, loading",
    "target",
    "state",
)
service_channel_seqno = _fact(
    "thl_service_channel_seqno", "Seqno that each of several writers has committed; -1: none", "target", "channel"
)
service_compared_at = _fact(
    "thl_service_compared_seconds", "Unix time of the last comparison by `thl serve`; absent: none", "target"
)
service_compared_different = _fact(
    "thl_service_compared_different", "1 if the last comparison by `thl serve` found differences, else 0", "target"
)


class TableCounts:
    """Counts rows and bytes by table, of a bounded number of tables: those that come first; all others together.

    One object for the whole process: samples stay in the registry, also when a stage begins again.

    Args:
        rows, size: the counters.
        most: number of tables with names; 0: nothing is counted. None: as `metrics.tables` of `serve` says.
    """

    def __init__(self, rows: Counter, size: Counter, most: int | None = None) -> None:
        self._rows, self._size = rows, size
        self._most = most
        self._counters: dict[tuple[str, str, str], tuple[Counter, Counter]] = {}

    def add(self, service: str, schema: str, table: str, rows: int, size: int) -> None:
        """Count row changes of a table, and the bytes of their images."""
        most = _served.tables if self._most is None else self._most
        if not most:
            return
        labels = (service, schema, table)
        found = self._counters.get(labels)
        if found is None:
            named = len(self._counters) < most
            labels = labels if named else (service, "", "")
            found = self._rows.labels(*labels), self._size.labels(*labels)
            if named:
                self._counters[labels] = found
        found[0].inc(rows)
        found[1].inc(size)


published_tables: Final = TableCounts(published_table_rows, published_table_bytes)
applied_tables: Final = TableCounts(applied_table_rows, applied_table_bytes)


@dataclass(slots=True)
class _Served:
    """The settings of the metrics server; without one no table is counted."""

    tables: int = 0


_served: Final = _Served()


def set_build_info() -> None:
    """Set the versions of this program and of Python."""
    build_info.labels(version("thl-connector"), platform.python_version()).set(1)


def watch_relay(service: str, folder: Path) -> None:
    """Let the metrics of the relay's disk be read whenever they are asked for."""
    relay_free.labels(service).set_function(lambda: _disk(folder, free=True))
    relay_size.labels(service).set_function(lambda: _disk(folder, free=False))


def _disk(folder: Path, *, free: bool) -> float:
    try:
        found = shutil.disk_usage(folder)
    except OSError:
        return math.nan  # the applier itself finds the folder away
    return found.free if free else found.total


class OldNames(Collector):
    """Exposes each renamed metric also under its old name."""

    def describe(self) -> Iterator[Metric]:
        """Return the old families without samples, so that registering does not collect."""
        for one in _renamed():
            yield Metric(one.old_name, one.meaning, one.kind)

    def collect(self) -> Iterator[Metric]:
        """Return the samples of the renamed metrics under their old names."""
        old_names = {one.name: one.old_name for one in _renamed()}
        for family in list(REGISTRY.restricted_registry(list(old_names)).collect()):
            old = old_names[family.name]
            copy = Metric(old, family.documentation, family.type)
            copy.samples = [Sample(old, *sample[1:]) for sample in family.samples]
            yield copy


def _renamed() -> list[Declared]:
    return [one for one in DECLARED if one.old_name]


def serve(metrics: Metrics, health: ProcessHealth | None = None) -> None:
    """Start the server of the metrics, and of `/healthz` and `/readyz`; do nothing if `metrics.port` is 0.

    Args:
        metrics: the settings.
        health: answers the probes; None: the process is alive and ready as long as it answers.

    Raises:
        ConfigError: the port is in use or needs privileges, or the host is not an address of this machine.
    """
    if not metrics.port:
        return
    _served.tables = metrics.tables
    set_build_info()
    if metrics.old_names:
        REGISTRY.register(OldNames())
    try:
        server, _ = start_http_server(metrics.port, addr=metrics.host)
    except OSError as error:
        raise ConfigError.of_fields(
            f"the metrics server cannot listen on {metrics.host}, port {metrics.port}: {error.strerror}",
            {"metrics.port": None, "metrics.host": None},
            hint="give each process its own metrics.port (0: no server); metrics.host is an address of this machine",
        ) from error
    server.set_app(_application(health))
    # Else a client that asks nothing has a thread for ever. `timeout` is of `socketserver.StreamRequestHandler`.
    server.RequestHandlerClass.timeout = CLIENT_SECONDS  # type: ignore[attr-defined]
    server.handle_error = _client_failed  # type: ignore[method-assign, assignment]
    if not on_this_machine(metrics.host):
        LOG.warning("everyone who reaches this address may read the metrics, without TLS", extra={"host": metrics.host})


def _application(health: ProcessHealth | None) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """Return the WSGI application: that of the metrics, with the two pages for probes."""
    metrics_app = make_wsgi_app()
    always = Answer(ok=True, text="ok")
    pages: dict[str, Callable[[], Answer]] = {
        "/healthz": (lambda: always) if health is None else health.alive,
        "/readyz": (lambda: always) if health is None else health.ready,
    }

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        page = pages.get(environ["PATH_INFO"])
        if page is None:
            answer: Iterable[bytes] = metrics_app(environ, start_response)
            return answer
        ok, text = page()
        start_response("200 OK" if ok else "503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]

    return application


def _client_failed(_: object, address: object) -> None:
    """Log that a client has gone, or has asked nothing in time."""
    LOG.debug("a client of the metrics has failed", extra={"address": address}, exc_info=True)


def reference() -> str:
    """Generate docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "<!-- Written by `python -m connector.metrics > docs/metrics.md`; a test keeps it equal. -->",
        "",
        "`metrics.port` starts a Prometheus endpoint in `thl produce`, `thl apply` and `thl verify --every`; each",
        "process needs a port of its own. It listens on `metrics.host` (default: loopback only), without TLS or",
        "authentication. A histogram has the samples `_bucket`, `_count` and `_sum`. `metrics.old_names: true` also",
        "serves renamed metrics under their old names. `/healthz` and `/readyz` are [for probes](deploying.md#probes).",
        "",
        "`thl serve` has an endpoint of its own, `/metrics` ([serving](serving.md)). It reads services from outside,",
        "so its metrics are there also while producer or applier is dead.",
    ]
    for command in dict.fromkeys(one.command for one in DECLARED):
        lines += ["", f"## {command}", "", "| Metric | Type | Labels | Meaning | Old name |", "|---|---|---|---|---|"]
        for one in DECLARED:
            if one.command == command:
                labels = ", ".join(f"`{label}`" for label in one.labels)
                old = f"`{one.old_name}`" if one.old_name else ""
                lines.append(f"| `{one.name}` | {one.kind} | {labels} | {one.meaning} | {old} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201
