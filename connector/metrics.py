"""Declares every metric, once, with its meaning, and serves them for Prometheus.

docs/metrics.md is generated from these declarations: `python -m connector.metrics > docs/metrics.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from connector.errors import ConfigError

if TYPE_CHECKING:
    from connector.config.model import Metrics

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


_P, _A, _V = "thl produce", "thl apply", "thl verify --every"

published_events = _counter(_P, "thl_published_events", "Events whose last fragment is committed to Kafka")
published_rows = _counter(_P, "thl_published_rows", "Row changes of published events")
published_bytes = _counter(_P, "thl_published_bytes", "Encoded bytes of published fragments")
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
ignored_ddl = _counter(_A, "thl_ignored_ddl", "DDL statements without effect on rows, not applied", "command")
verified_at = _gauge(_V, "thl_verified_seconds", "Unix time of the last comparison; 0: none yet")
verified_tables = _gauge(_V, "thl_verified_tables", "Tables in the last comparison")
verified_rows = _gauge(_V, "thl_verified_rows", "Rows of the source in the last comparison")
verified_different = _gauge(_V, "thl_verified_different_tables", "Tables that differed in the last comparison")
verified_not_compared = _gauge(
    _V, "thl_verified_not_compared_tables", "Captured tables that the last comparison could not compare"
)


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


def serve(metrics: Metrics) -> None:
    """Start the metrics server; do nothing if `metrics.port` is 0.

    Raises:
        ConfigError: the port is in use or needs privileges, or the host is not an address of this machine.
    """
    if not metrics.port:
        return
    if metrics.old_names:
        REGISTRY.register(OldNames())
    try:
        start_http_server(metrics.port, addr=metrics.host)
    except OSError as error:
        raise ConfigError.of_fields(
            f"the metrics server cannot listen on {metrics.host}, port {metrics.port}: {error.strerror}",
            {"metrics.port": None, "metrics.host": None},
            hint="give each process its own metrics.port (0: no server); metrics.host is an address of this machine",
        ) from error


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
        "serves renamed metrics under their old names.",
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
