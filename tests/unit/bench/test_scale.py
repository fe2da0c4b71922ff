"""The arithmetic of the capacity model, on numbers that can be checked by hand."""

from __future__ import annotations

import pytest

from tests.bench.result import Result, Row
from tests.bench.scale import capacity, costs, pages, queueing
from tests.bench.scale.capacity import Limit, Workload
from tests.bench.scale.costs import DRIVERS_JVM, EXECUTORS, KINDS, MEASURED, PARTS, Costs, fitted


def model(**parts: float) -> Costs:
    """Costs of nothing but the parts given, equal for each workload; turns of 10, 40 and 5 ms."""
    known = {name: dict.fromkeys(KINDS, parts.get(name, 0.001)) for name in PARTS}
    return Costs("here", known, 0.25, kafka_ms=10, fetch_ms=40, commit_ms=5, row_bytes=200, event_bytes=1000)


def results(figures: dict[str, float], *further: Row) -> list[Result]:
    """A run in which every process used the same for a row of a kind."""
    processes = {process for process, _ in MEASURED.values()} | {"JVM", "workers"}
    rows = [
        Row(half + kind, {"rows/s": 1.0} | {f"CPU s/M {process}": figures[kind] for process in processes})
        for half in (costs.PRODUCE, costs.APPLY)
        for kind in figures
    ]
    rows += [Row("commit to Kafka, 200/s", {"p50 ms": 8.0}), Row("commit to Kafka, 2000/s", {"p50 ms": 9.0})]
    for rate, late in ((2000, 99.0), (200, 73.0)):
        rows.append(Row(f"commit to PostgreSQL, {rate}/s", dict.fromkeys(("p50 ms", "p95 ms", "p99 ms"), late)))
    return [Result("throughput", "then", {}, {}, (*rows, *further))]


def test_costs_of_a_row_are_those_of_its_workload() -> None:
    found = fitted(results({"oltp": 4.0, "cold": 7.0}), model(producer=1.0))

    assert found.parts["producer"] == {"oltp": 4.0, "cold": 7.0, "bulk": 1.0, "one row": 1.0}  # two were not measured


def test_executors_have_their_share_of_the_jvm_and_all_python_workers() -> None:
    found = fitted(results({"oltp": 4.0}), model())

    assert found.driver_share == 0.25
    assert found.parts[DRIVERS_JVM]["oltp"] == 1.0
    assert found.parts[EXECUTORS]["oltp"] == 3.0 + 4.0


def test_share_of_the_drivers_jvm_is_that_of_the_smallest_cluster() -> None:
    smaller, larger = (
        Row(f"Kafka to PostgreSQL, oltp, {number} executors", {"rows/s": 1, "CPU s/M JVM": jvm, "CPU s/M executors": 6})
        for number, jvm in ((1, 4), (2, 6))
    )

    assert fitted(results({"oltp": 4.0}, larger, smaller), model()).driver_share == 0.4


def test_micro_batch_time_is_the_rest_of_the_lowest_rates_median() -> None:
    found = fitted(results({"oltp": 4.0}), model())

    assert found.kafka_ms == 8.0
    assert found.fetch_ms == pytest.approx((73.0 - 8.0 - 5.0) / 1.5)


def test_missing_measurement_is_refused_by_its_figure() -> None:
    with pytest.raises(LookupError, match="CPU s/M"):
        fitted(results({"oltp": 4.0}, Row(costs.APPLY + "bulk", {"rows/s": 1.0})), model())


def test_cores_are_rate_times_cost() -> None:
    used = capacity.cores(model(producer=5.0), Workload(100_000, "oltp"))

    assert used["producer"] == pytest.approx(0.5)


def test_a_row_of_twice_the_bytes_costs_twice() -> None:
    assert capacity.per_row(model(producer=3.0), "producer", Workload(1, "oltp", row_bytes=400)) == pytest.approx(6.0)


def test_parts_of_one_host_share_its_cores() -> None:
    cost = model(producer=2.0, postgres=3.0)
    hosts = [("producer", "postgres", "mysqld")]

    limit = capacity.highest(cost, Workload(0, "oltp"), hosts, host_cores=1)

    assert limit.rows == pytest.approx(1e6 / 5.001)
    assert limit.by == "all its cores"


def test_a_part_of_one_thread_gains_nothing_by_more_cores() -> None:
    cost, workload = model(postgres=2.0), Workload(0, "oltp")
    hosts = [("postgres",)]

    assert capacity.highest(cost, workload, hosts, 16) == capacity.highest(cost, workload, hosts, 4)
    assert capacity.highest(cost, workload, hosts, 16).rows == pytest.approx(costs.MOST["postgres"] / 2e-6)


def test_executors_add_up_until_the_target_has_enough() -> None:
    cost, workload = model(executors=4.0, postgres=2.0, driver=0.5), Workload(0, "oltp")

    assert capacity.applied_by(cost, workload, 1) == Limit(pytest.approx(250_000), EXECUTORS)
    assert capacity.applied_by(cost, workload, 2) == Limit(pytest.approx(500_000), EXECUTORS)
    assert capacity.applied_by(cost, workload, 4) == Limit(pytest.approx(550_000), "postgres")
    assert capacity.read_by(cost, workload, 4) == pytest.approx(1_000_000)


def test_executors_for_a_rate_are_not_full() -> None:
    cost = model(executors=10.0)

    assert capacity.executors(cost, Workload(140_000, "oltp")) == 2  # 1.4 cores are 70 % of two
    assert capacity.executors(cost, Workload(141_000, "oltp")) == 3


def test_services_share_a_target_but_each_reads_the_whole_log() -> None:
    merging = model(postgres=10.0)
    reading = model(mysqld=10.0)
    workload = Workload(200_000, "oltp")  # two cores of either

    assert capacity.services(merging, workload) == 3  # 2 / 3 of a core is below 70 % of 1.1; a half of two is not
    assert capacity.services(reading, workload) is None


def test_megabytes_a_second_and_back_to_rows() -> None:
    cost = model()
    workload = Workload(50_000, "oltp")

    assert capacity.traffic(cost, workload)["binary log"] == pytest.approx(50_000 * 200e-6 + 10_000 * 1000e-6)
    assert capacity.rows_of(cost, 20.0, "oltp", 200) == pytest.approx(50_000)


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

    assert sum(line.startswith("| --- |") for line in text.splitlines()) == 7
    assert "2 TB of binary log a day = 23 MB/s" in text
    assert "nan" not in text
