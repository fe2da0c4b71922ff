"""The newest readings as metrics of Prometheus: there also while producer or applier is dead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from connector import metrics
from connector.log.epochs.load_pause import PauseCause
from connector.log.transaction.position import CAUSES
from connector.metrics import Declared
from connector.serve.watcher import DOWN, Reading, TargetReading, Watcher
from connector.status.report import ServiceState

Sample = tuple[Declared, tuple[str, ...], float]


class ServiceMetrics(Collector):
    """Collects the newest readings. Of a service that was not read yet, or not for long, it has only the age.

    Args:
        watchers: of the services.
    """

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        self._watchers = list(watchers)

    def describe(self) -> Iterator[Metric]:
        """Return no families, so that registering does not collect."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return the families that have samples."""
        families: dict[str, GaugeMetricFamily] = {}
        for watcher in self._watchers:
            name = watcher.service.name
            for declared, labels, value in _samples(watcher, watcher.newest):
                family = families.get(declared.name)
                if family is None:
                    family = families[declared.name] = GaugeMetricFamily(
                        declared.name, declared.meaning, labels=declared.labels
                    )
                family.add_metric((name, *labels), value)
        yield from families.values()


def registry_of(watchers: Iterable[Watcher]) -> CollectorRegistry:
    """Return a registry of the services, and of this process."""
    registry = CollectorRegistry()
    registry.register(ServiceMetrics(watchers))
    ProcessCollector(registry=registry)
    metrics.set_build_info()
    registry.register(metrics.build_info)
    return registry


def exposed(registry: CollectorRegistry) -> bytes:
    """Return the metrics in Prometheus' text format."""
    return generate_latest(registry)


def _samples(watcher: Watcher, reading: Reading | None) -> Iterator[Sample]:
    yield metrics.service_read_age, (), watcher.age
    yield metrics.service_read_stale, (), float(watcher.is_stale(reading))
    if reading is None:
        return
    yield metrics.service_read_at, (), reading.at / 1e6
    yield metrics.service_read_took, (), reading.seconds
    if watcher.is_stale(reading):
        return
    yield metrics.service_problems, (), len(reading.problems)
    yield from _producer(reading)
    for name, target in reading.targets.items():
        yield from _target(name, target)
        if (comparison := watcher.comparisons.get(name)) is not None:
            yield metrics.service_compared_at, (name,), comparison.at
            yield metrics.service_compared_different, (name,), float(comparison.verdict == "different")


def _producer(reading: Reading) -> Iterator[Sample]:
    producer = reading.producer
    yield metrics.service_producer_up, (), _up(producer.state)
    yield from _states(metrics.service_producer_state, (), producer.state)
    if producer.log_id:
        yield metrics.service_epoch, (), producer.latest_epoch_number
        yield metrics.service_producer_restarts, (), producer.restarts
        yield metrics.service_first_seqno, (), producer.minimum_stored_seqno
        yield metrics.service_published_seqno, (), producer.maximum_stored_seqno
        yield metrics.service_prepared, (), producer.prepared
        yield metrics.service_prepared_since, (), (reading.prepared_since or 0) / 1e6
        yield metrics.service_trapped, (), reading.trapped
        yield metrics.service_loads, (), sum(load.under_way for load in reading.loads)
        cause = None if producer.load_pause is None else producer.load_pause.cause
        for one in PauseCause:
            yield metrics.service_load_paused, (str(one),), float(one is cause)
    yield metrics.service_producer_lag_events, (), _number(producer.events_behind)
    yield metrics.service_producer_lag, (), _number(producer.seconds_behind)
    left = producer.seconds_until_purge
    yield metrics.service_purge, (), math.inf if left is None else max(left, 0.0)
    if producer.semi_sync:
        yield metrics.service_semi_sync, (), float(producer.semi_sync == "ON")


def _target(name: str, target: TargetReading) -> Iterator[Sample]:
    applier, row = target.applier, target.observation.target
    unobservable = row is not None and row.applier is None  # the target has no sessions: an applier may run or not
    yield metrics.service_applier_up, (name,), math.nan if unobservable else _up(applier.state)
    yield from _states(metrics.service_applier_state, (name,), applier.state)
    yield metrics.service_applier_lag_events, (name,), _number(applier.events_behind)
    yield metrics.service_applier_lag, (name,), _number(applier.seconds_behind)
    yield metrics.service_applied_latency, (name,), _number(applier.applied_latency)
    yield metrics.service_catch_up, (name,), _number(target.catch_up_seconds)
    yield metrics.service_applied_rate, (name,), math.nan if target.estimate is None else target.estimate.applied
    if row is None:
        return
    yield metrics.service_applied_seqno, (name,), applier.applied_last_seqno
    yield metrics.service_applier_restarts, (name,), applier.restarts
    yield metrics.service_consistent, (name,), float(applier.consistent)
    for cause in CAUSES:
        yield metrics.service_inconsistent_because, (name, cause), float(cause in applier.inconsistent_because)
    tables: Mapping[str, Sequence[str]] = {
        "excluded": applier.excluded_tables,
        "inconsistent": applier.inconsistent_tables,
        "loading": applier.loading_tables,
    }
    for state, found in tables.items():
        yield metrics.service_tables, (name, state), len(found)
    for channel, seqno in enumerate(applier.channels):
        yield metrics.service_channel_seqno, (name, str(channel)), seqno


def _states(declared: Declared, labels: tuple[str, ...], state: ServiceState) -> Iterator[Sample]:
    for one in ServiceState:
        yield declared, (*labels, str(one)), float(one is state)


def _up(state: ServiceState) -> float:
    return math.nan if state is ServiceState.UNKNOWN else float(state not in DOWN)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
