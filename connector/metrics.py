"""Every metric, declared once with its meaning. Counters and gauges of prometheus-client's default registry."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from connector.errors import ConfigError

LATENCY = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)

published_events = Counter("thl_published_events", "Events whose last fragment is committed in Kafka", ["service"])
published_rows = Counter("thl_published_rows", "Rows of published events", ["service"])
published_bytes = Counter("thl_published_bytes", "Encoded bytes of published fragments", ["service"])
published_seqno = Gauge("thl_published_seqno", "Last finished seqno in Kafka", ["service"])
published_latency = Histogram(
    "thl_published_latency_seconds",
    "From commit on the source to commit in Kafka",
    ["service"],
    buckets=LATENCY,
)
kafka_commit = Histogram("thl_kafka_commit_seconds", "Duration of a Kafka transaction's commit", ["service"])
epoch = Gauge("thl_epoch", "The producer's epoch", ["service"])
ignored_events = Counter("thl_ignored_binlog_events", "Binlog events left out on purpose", ["service", "type"])
ignored_transactions = Counter(
    "thl_ignored_transactions",
    "Transactions left out because of the server id that wrote them",
    ["service", "server_id"],
)
prepared_transactions = Gauge("thl_prepared_transactions", "XA transactions prepared and not decided", ["service"])
prepared_since = Gauge(
    "thl_prepared_since_seconds",
    "When the oldest of them was prepared, seconds since 1970 UTC; 0: there is none",
    ["service"],
)
held_since = Gauge(
    "thl_publication_held_since_seconds",
    "Since when a replica of publish.wait_for holds publication, seconds since 1970 UTC; 0: it does not",
    ["service", "replica"],
)
restarts = Counter("thl_restarts", "Times a stage was started again after a passing failure", ["service", "stage"])
applied_events = Counter("thl_applied_events", "Events committed on the target", ["service"])
applied_rows = Counter("thl_applied_rows", "Row changes of events committed on the target", ["service"])
applied_seqno = Gauge("thl_applied_seqno", "Last seqno committed on the target", ["service"])
applied_latency = Histogram(
    "thl_applied_latency_seconds",
    "From commit on the source to commit on the target",
    ["service"],
    buckets=LATENCY,
)
reading_continuously = Gauge("thl_reading_continuously", "1 in the latency profile, 0 in catch-up", ["service"])
behind_events = Gauge("thl_behind_events", "Events that the log has and the target has not", ["service"])
catch_up_seconds = Gauge(
    "thl_catch_up_seconds",
    "Until the target has caught up, at the rates of the last half minute; NaN: it does not, or nobody can tell",
    ["service"],
)
verified_at = Gauge(
    "thl_verified_seconds", "When `thl verify --every` compared last, seconds since 1970 UTC; 0: not yet", ["service"]
)
verified_tables = Gauge("thl_verified_tables", "Tables that it compared then", ["service"])
verified_rows = Gauge("thl_verified_rows", "Rows of the source that it compared then", ["service"])
verified_different = Gauge("thl_verified_different_tables", "Tables that differed then", ["service"])
verified_not_compared = Gauge("thl_verified_not_compared_tables", "Tables that it could not compare then", ["service"])
ignored_ddl = Counter("thl_ignored_ddl", "DDL without effect on rows, left out", ["service", "command"])


def serve(port: int) -> None:
    """Serve the metrics on loopback; 0: do not.

    Raises:
        ConfigError: another program has the port, or this user may not have it.
    """
    if not port:
        return
    try:
        start_http_server(port, addr="127.0.0.1")
    except OSError as error:
        raise ConfigError(
            f"metrics.port {port} cannot be had: {error.strerror}",
            hint="each process needs a port of its own: another metrics.port, or 0 for none",
        ) from error
