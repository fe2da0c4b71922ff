"""The Grafana dashboard: its queries are made of declared metrics, and a real Prometheus answers each.

It is not rendered: there is no Grafana here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from connector import metrics
from connector.config.model import Metrics
from connector.config.serve import Serve
from connector.metrics import DECLARED
from connector.serve import watcher as watcher_module
from connector.serve.history import Comparison
from tests.support.producing import until
from tests.support.servers.prometheus import scraping
from tests.support.serving import Readings, free_port, service, serving, troubled

ROOT = Path(__file__).parents[3]
DASHBOARD = json.loads((ROOT / "docker" / "grafana" / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
VARIABLES = {"$service": "shop", "$target": ".*", "$__rate_interval": "30s"}


def test_queries_are_made_of_declared_metrics_and_their_labels() -> None:
    labels = {one.name: set(one.labels) for one in DECLARED}
    for _, query in QUERIES:
        for name, selector in re.findall(r"(thl_\w+)\{([^}]*)\}", query):
            declared = name.removesuffix("_bucket")
            assert declared in labels, name
            assert set(re.findall(r"(\w+)=~", selector)) <= labels[declared], query
        assert not re.search(r"thl_\w+(?![\w{])", query), query


def test_panels_have_their_own_place_and_id() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_legends_name_labels_of_their_queries() -> None:
    labels = {one.name: set(one.labels) for one in DECLARED}
    for panel in PANELS:
        for target in panel["targets"]:
            (name, *_) = re.findall(r"thl_\w+", target["expr"])
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels[name.removesuffix("_bucket")]


def touch() -> None:
    """Give the metrics of producer and applier values, as their processes would."""
    one = "shop"
    for counter in (metrics.published_rows, metrics.published_bytes, metrics.applied_rows):
        counter.labels(one).inc(5)
    for histogram in (metrics.published_latency, metrics.applied_latency, metrics.kafka_commit):
        histogram.labels(one).observe(0.02)
    metrics.restarts.labels(one, "apply").inc()
    for rows, size in (
        (metrics.applied_table_rows, metrics.applied_table_bytes),
        (metrics.published_table_rows, metrics.published_table_bytes),
    ):
        metrics.TableCounts(rows, size, most=5).add(one, "shop", "orders", 3, 100)
    metrics.jvm_memory.labels(one, "heap").set(1)
    metrics.jvm_heap_limit.labels(one).set(2)
    metrics.jvm_collections.labels(one).inc(0.1)
    metrics.verified_at.labels(one, "target").set(1_760_000_000)
    metrics.watch_relay(one, ROOT)


@pytest.mark.long
def test_prometheus_answers_every_query_and_fires(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(troubled()),))
    history = tmp_path / "history"
    compared = {
        "kind": "comparison",
        "service": "shop",
        "value": Comparison(1_760_000_000, "target", "different").as_object(),
    }
    history.write_text(json.dumps(compared) + "\n")
    settings = Serve(port=free_port(), interval=0.5, history=history)
    processes = free_port()
    touch()
    metrics.serve(Metrics(port=processes))
    rules = ROOT / "docker" / "prometheus" / "alerts.yaml"
    with serving(service(), settings=settings) as port, scraping(tmp_path / "prometheus", rules) as at:
        at.scrape("thl-serve", port)
        at.scrape("thl-produce", processes)
        unanswered: list[tuple[str, str]] = []

        def is_answered() -> bool:
            touch()
            unanswered.clear()
            for title, query in QUERIES:
                for name, value in VARIABLES.items():
                    query = query.replace(name, value)  # noqa: PLW2901
                if not at.query(query):
                    unanswered.append((title, query))
            return not unanswered

        until(is_answered, 60)
        waiting = {one["labels"]["alertname"]: one["annotations"]["summary"] for one in (*at.firing(), *at.pending())}
        assert {"ThlApplierDown", "ThlApplierLagLarge", "ThlPurgeSoon", "ThlVerifyDifferent"} <= set(waiting)
        assert waiting["ThlApplierDown"] == "no applier of shop has a session with target target"
        assert "11m 40s" in waiting["ThlApplierLagLarge"]
