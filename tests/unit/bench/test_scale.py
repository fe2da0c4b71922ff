"""The arithmetic of the capacity model, on numbers that can be checked by hand."""

from __future__ import annotations

import pytest

from tests.bench.result import Result, Row
from tests.bench.scale import capacity, costs, pages, queueing
from tests.bench.scale.capacity import Workload
from tests.bench.scale.costs import PARTS, Cost, Costs, fitted


def model(**parts: Cost) -> Costs:
    """Costs of nothing but the parts given; turns of 10, 40 and 5 ms."""
    known = {name: parts.get(name, Cost(0.001, 0.0)) for name in PARTS}
    return Costs(measured="here", parts=known, kafka_ms=10, fetch_ms=40, commit_ms=5, row_bytes=200, event_bytes=1000)


def results(figures: dict[str, float]) -> list[Result]:
    """A run in which every process used the same for a row of a kind."""
    rows = [
        Row(half + kind, {"rows/s": 1.0} | {f"CPU s/M {process}": figures[kind] for process, _ in PARTS.values()})
        for half in (costs.PRODUCE, costs.APPLY)
        for kind in figures
    ]
    rows += [Row("commit to Kafka, 200/s", {"p50 ms": 8.0}), Row("commit to Kafka, 2000/s", {"p50 ms": 9.0})]
    for rate, late in ((2000, 99.0), (200, 73.0)):
        rows.append(Row(f"commit to PostgreSQL, {rate}/s", dict.fromkeys(("p50 ms", "p95 ms", "p99 ms"), late)))
    return [Result("throughput", "then", {}, {}, tuple(rows))]


def test_costs_of_rows_and_of_transactions_are_fitted_from_two_workloads() -> None:
    # 2 µs a row and 10 µs a transaction: of 5 rows 2 + 10/5, of 1000 rows 2 + 10/1000
    found = fitted(results({"oltp": 4.0, "bulk": 2.01, "cold": 7.0}))

    assert found.parts["producer"].row_us == pytest.approx(2.0)
    assert found.parts["producer"].event_us == pytest.approx(10.0)
    assert found.parts["postgres"] == Cost(7.0, 0.0)  # the dearest row counts


def test_micro_batch_time_is_the_rest_of_the_lowest_rates_median() -> None:
    found = fitted(results({"oltp": 4.0, "bulk": 2.0}))

    assert found.kafka_ms == 8.0
    assert found.fetch_ms == pytest.approx((73.0 - 8.0 - 5.0) / 1.5)


def test_missing_measurement_is_refused_by_its_figure() -> None:
    with pytest.raises(LookupError, match="CPU s/M"):
        fitted(results({"oltp": 4.0}))


def test_cores_are_rate_times_cost() -> None:
    used = capacity.cores(model(producer=Cost(1.0, 20.0)), Workload(rows=100_000, rows_per_event=5))

    assert used["producer"] == pytest.approx(0.1 * (1.0 + 4.0))


def test_a_row_of_twice_the_bytes_costs_twice_the_row_but_not_the_transaction() -> None:
    cost = model(producer=Cost(1.0, 20.0))

    assert capacity.per_row(cost, "producer", Workload(1, 5, row_bytes=400)) == pytest.approx(2.0 + 4.0)


def test_parts_of_one_host_share_its_cores() -> None:
    cost = model(producer=Cost(2.0, 0.0), postgres=Cost(3.0, 0.0))
    hosts = [("producer", "postgres", "mysqld")]

    limit = capacity.highest(cost, Workload(0, 5), hosts, host_cores=1)

    assert limit.rows == pytest.approx(1e6 / 5.001)
    assert limit.by == "all its cores"


def test_a_part_of_one_thread_gains_nothing_by_more_cores() -> None:
    cost = model(postgres=Cost(2.0, 0.0))
    hosts = [("postgres",)]

    assert capacity.highest(cost, Workload(0, 5), hosts, 16) == capacity.highest(cost, Workload(0, 5), hosts, 4)
    assert capacity.highest(cost, Workload(0, 5), hosts, 16).rows == pytest.approx(costs.MOST["postgres"] / 2e-6)


def test_a_jvm_gains_by_partitions() -> None:
    cost = model(JVM=Cost(10.0, 0.0))

    assert capacity.alone(cost, "JVM", Workload(0, 5), partitions=3) == pytest.approx(4e5)
    assert capacity.partitions(cost, Workload(rows=280_000, rows_per_event=5)) == 3  # 2.8 cores are 70 % of 3 + 1


def test_services_share_a_target_but_each_reads_the_whole_log() -> None:
    merging = model(postgres=Cost(10.0, 0.0))
    reading = model(mysqld=Cost(10.0, 0.0))
    workload = Workload(rows=200_000, rows_per_event=5)  # two cores of either

    assert capacity.services(merging, workload) == 3  # 2 / 3 of a core is below 70 % of 1.1; a half of two is not
    assert capacity.services(reading, workload) is None


def test_megabytes_a_second_and_back_to_rows() -> None:
    cost = model()
    workload = Workload(rows=50_000, rows_per_event=5)

    assert capacity.traffic(cost, workload)["binary log"] == pytest.approx(50_000 * 200e-6 + 10_000 * 1000e-6)
    assert capacity.rows_of(cost, 20.0, 5, 200) == pytest.approx(50_000)


def test_reader_that_takes_everything_adds_one_turn_of_waiting() -> None:
    # 0.0 alone; 0.1 and 0.2 come meanwhile and leave together; 5.0 waits for none
    assert queueing.gated([0.0, 0.1, 0.2, 5.0], turn=1.0, each=0.5) == [1.5, 3.5, 3.5, 6.5]


def test_latency_grows_with_the_turn_and_not_without_bound() -> None:
    """Turns of T = fixed + load x T are fixed / (1 - load) long, and an event sees about one and a half of them."""
    come = queueing.arrivals(1000, 200, burst=1)
    load = 0.7

    late = [seen - at for at, seen in zip(come, queueing.gated(come, 0.040, load / 1000), strict=True)]

    assert sum(late) / len(late) == pytest.approx(1.5 * 0.040 / (1 - load), rel=0.05)


def test_idle_pipeline_has_the_latency_of_its_three_turns() -> None:
    late = queueing.latencies(model(), rate=0.5, rows_per_event=5, seconds=400)

    assert queueing.percentiles(late)[0] == pytest.approx(10 + 40 + 5, rel=0.01)


def test_rendered_page_has_every_table() -> None:
    text = pages.page(costs.read(), row_bytes=200, terabytes=2)

    assert sum(line.startswith("| --- |") for line in text.splitlines()) == 6
    assert "2 TB of binary log a day = 23 MB/s" in text
    assert "nan" not in text
