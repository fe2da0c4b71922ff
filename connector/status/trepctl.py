"""Names a service's numbers as Tungsten's `trepctl status` does, for programs that read those.

A name is omitted if only a running applier knows its value (`pendingError`,
`timeInStateSeconds`, `uptimeSeconds`), or if nothing corresponds to it (`channels`, `masterListenUri`).
"""

from __future__ import annotations

from importlib.metadata import version

from connector.config.model import Config
from connector.status.report import ProducerStatus, ServiceState, Status

NOTHING: float = -1.0  # Tungsten's latency before the first event


def tungsten_names(status: Status, config: Config, now: int) -> dict[str, object]:
    """Return one object, as of one replicator that reads the source and applies to the target.

    Args:
        status: the numbers.
        config: the addresses of both ends.
        now: the time, in µs since 1970 UTC.

    Returns:
        Latencies in seconds, -1.0 before the first event. The state is the worse of the two ends'.
    """
    producer, applier = status.producer, status.applier
    latency, relative = applier.applied_latency, applier.relative_latency
    return {
        "appliedLastEventId": applier.applied_last_event_id or "NONE",
        "appliedLastSeqno": applier.applied_last_seqno,
        "appliedLatency": NOTHING if latency is None else latency,
        "currentEventId": producer.current_event_id or "NONE",
        "currentTimeMillis": now // 1000,
        "latestEpochNumber": producer.latest_epoch_number,
        "maximumStoredSeqNo": producer.maximum_stored_seqno,
        "minimumStoredSeqNo": producer.minimum_stored_seqno,
        "pipelineSource": f"{config.kafka.bootstrap}/{config.topic}",
        "relativeLatency": NOTHING if relative is None else relative,
        "serviceName": status.service,
        "simpleServiceName": status.service,
        "sourceId": f"{config.source.host}:{config.source.port}",
        "state": _state(producer, applier.state),
        "version": f"thl-connector {version('thl-connector')}",
    }


def _state(producer: ProducerStatus, applier: ServiceState) -> str:
    """Return the producer's state if it does not run, else the applier's; one that was never started is OFFLINE."""
    worse = (
        producer.state if producer.state in {ServiceState.OFFLINE, ServiceState.UNKNOWN, ServiceState.NONE} else applier
    )
    return {
        ServiceState.NONE: "OFFLINE:NORMAL",
        ServiceState.OFFLINE: "OFFLINE:NORMAL",
        ServiceState.BEHIND: "ONLINE",
    }.get(worse, worse)
