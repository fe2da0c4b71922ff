"""The metrics server: its address, the names of its metrics, and their documentation."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from connector import metrics
from connector.config.model import Metrics
from connector.errors import ConfigError
from connector.health import BOUND, ProcessHealth
from tests.support.clock import Slept

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[metrics.OldNames]]:
    found: list[metrics.OldNames] = []
    register = REGISTRY.register

    def remembered(collector: metrics.OldNames) -> None:
        found.append(collector)
        register(collector)

    monkeypatch.setattr(REGISTRY, "register", remembered)
    yield found
    for collector in found:
        REGISTRY.unregister(collector)


def scraped(host: str, port: int) -> str:
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_metrics_page_equals_declarations() -> None:
    assert (DOCS / "metrics.md").read_text() == metrics.reference(), "python -m connector.metrics > docs/metrics.md"


def test_every_metric_of_the_module_is_declared() -> None:
    kinds = (Counter, Gauge, Histogram)
    names = {next(iter(value.describe())).name for value in vars(metrics).values() if isinstance(value, kinds)}
    names |= {value.name for value in vars(metrics).values() if isinstance(value, metrics.Declared)}
    assert names == {one.name.removesuffix("_total") for one in metrics.DECLARED}


def test_host_default_serves_loopback_only(port: int) -> None:
    metrics.serve(Metrics(port=port))
    assert "thl_lag_events" in scraped("127.0.0.1", port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=10)


def probed(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_probes_ask_the_same_server_for_the_health_of_the_process(port: int) -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    metrics.serve(Metrics(port=port), health)
    assert probed(port, "/healthz") == (200, "ok\n")
    assert probed(port, "/readyz") == (503, "starting\n")
    health.enter("online", ready=True)
    assert probed(port, "/readyz") == (200, "online\n")
    health.loop("publishing").turn()
    clock.sleep(BOUND + 1)
    stuck = (503, "publishing has not gone on for 601 s\n")
    assert (probed(port, "/healthz"), probed(port, "/readyz")) == (stuck, stuck)
    assert "thl_lag_events" in scraped("127.0.0.1", port)


def test_process_without_loops_is_healthy_while_it_answers(port: int) -> None:
    metrics.serve(Metrics(port=port))
    assert probed(port, "/healthz") == probed(port, "/readyz") == (200, "ok\n")


def test_host_given_serves_that_address(port: int) -> None:
    metrics.serve(Metrics(port=port, host="127.0.0.2"))
    assert "thl_lag_events" in scraped("127.0.0.2", port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_host_not_of_this_machine_is_refused(host: str, port: int) -> None:
    with pytest.raises(ConfigError) as raised:
        metrics.serve(Metrics(port=port, host=host))
    assert "metrics.host" in raised.value.fields


def test_number_of_tables_with_names_is_bounded() -> None:
    counts = metrics.TableCounts(metrics.applied_table_rows, metrics.applied_table_bytes, most=2)
    for table in ("a", "b", "c", "d", "a"):
        counts.add("bounded", "shop", table, 1, 10)
    found = {
        (sample.labels["schema"], sample.labels["table"]): sample.value
        for family in metrics.applied_table_bytes.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["service"] == "bounded"
    }
    assert found == {("shop", "a"): 20, ("shop", "b"): 10, ("", ""): 20}


def test_build_info_has_the_versions(port: int) -> None:
    metrics.serve(Metrics(port=port))
    assert 'thl_build_info{python="3.' in scraped("127.0.0.1", port)


def test_disk_of_the_relay_is_read_when_it_is_asked_for(port: int, tmp_path: Path) -> None:
    metrics.watch_relay("with a relay", tmp_path)
    metrics.watch_relay("without", tmp_path / "none")
    metrics.serve(Metrics(port=port))
    found = dict(
        line.rsplit(" ", 1) for line in scraped("127.0.0.1", port).splitlines() if line.startswith("thl_relay")
    )
    free, size = (float(found[f'thl_relay_{what}_bytes{{service="with a relay"}}']) for what in ("free", "size"))
    assert 0 < free < size
    assert found['thl_relay_free_bytes{service="without"}'] == "NaN"


def test_old_names_off_serves_new_names_only(port: int, registered: list[metrics.OldNames]) -> None:
    metrics.serve(Metrics(port=port))
    assert "thl_behind_events" not in scraped("127.0.0.1", port)
    assert not registered


@pytest.mark.usefixtures("registered")
def test_old_names_on_serves_both_names(port: int) -> None:
    metrics.lag_events.labels("shop").set(41)
    metrics.serve(Metrics(port=port, old_names=True))
    lines = scraped("127.0.0.1", port).splitlines()
    assert 'thl_lag_events{service="shop"} 41.0' in lines
    assert 'thl_behind_events{service="shop"} 41.0' in lines
    assert not any("thl_publication_held_since_seconds{" in line and f'service="{port}"' in line for line in lines)
    metrics.replica_lagging_since.labels(str(port), "r").set(7)
    lines = scraped("127.0.0.1", port).splitlines()
    assert f'thl_publication_held_since_seconds{{replica="r",service="{port}"}} 7.0' in lines
