"""Results become tables, and tables replace the marked places of a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.markdown import Column, cases, marked, provenance, replaced, table
from tests.bench.plots import draw
from tests.bench.result import Result, Row
from tests.bench.tables import rendered

MACHINE = {"processor": "two cores", "load before": "0.10"}


def result(part: str, *rows: Row) -> Result:
    return Result(part, "2026-01-01 10:00", {"rows": 10}, MACHINE, rows)


def test_void_rows_are_mentioned_and_not_counted() -> None:
    found = [result("tls", Row("a", {"x": 1.0}), Row("a", {"x": 9.0}, "lost a row"), Row("a", {"x": 2.0}))]
    assert [row.figures["x"] for row in cases(found)["a"]] == [1.0, 2.0]
    assert "Void, and not in the table: a: lost a row." in provenance(found)


def test_a_table_has_medians_spreads_and_ratios() -> None:
    rows = {
        "plain": [Row("plain", {"rate": 100.0}), Row("plain", {"rate": 120.0}), Row("plain", {"rate": 110.0})],
        "TLS": [Row("TLS", {"rate": 88.0})],
    }
    columns = [Column("rows/s", "rate"), Column("never seen", "other")]
    assert table(rows, columns, {"plain": "plain", "TLS": "plain"}).splitlines() == [
        "|  | rows/s | ratio | runs |",
        "|---|---|---|---|",
        "| plain | 110 (100–120) | 1.00 | 3 |",
        "| TLS | 88 | 0.80 | 1 |",
    ]


DOCUMENT = "before\n<!-- bench:one -->\nold\n<!-- /bench -->\nbetween\n<!-- bench:two -->\n<!-- /bench -->\nafter\n"


def test_only_what_is_between_its_markers_is_replaced() -> None:
    found = replaced(DOCUMENT, "one", r"new \1")
    assert found == DOCUMENT.replace("old", r"new \1")
    assert replaced(found, "one", "old") == DOCUMENT
    assert marked(DOCUMENT) == ["one", "two"]


@pytest.mark.parametrize("name", ["three", "tw"])
def test_a_document_without_the_markers_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        replaced(DOCUMENT, name, "new")


def test_unclosed_marker_is_refused_and_does_not_match_the_next_one() -> None:
    with pytest.raises(ValueError):
        replaced("<!-- bench:one -->\n<!-- bench:two -->\n<!-- /bench -->", "one", "new")


GROWTH = {
    "value": 10.0, "rows": 10.0, "columns": 10.0,
    "producer µs/row": 2.0, "producer µs/row low": 1.0, "producer µs/row high": 3.0, "producer CPU µs/row": 2.0,
    "applier µs/row": 5.0, "applier µs/row low": 4.0, "applier µs/row high": 6.0, "applier CPU µs/row": 7.0,
    "producer peak MB": 100.0, "driver peak MB": 300.0, "JVM peak MB": 900.0, "workers peak MB": 200.0,
}  # fmt: skip
BEHIND = {"rows behind": 10.0, "s to first row": 1.0, "s to caught up": 2.0, "rows/s": 5.0}
SERIES = {
    "s": [0.0, 1.0, 2.0], "rows behind": [10.0, 5.0, 0.0], "estimate s": [-1.0, 1.0, 0.0],
    "MB producer": [1.0] * 3, "MB driver": [1.0] * 3, "MB JVM": [1.0] * 3, "MB workers": [1.0] * 3,
}  # fmt: skip
EVERYTHING = [
    result("throughput", Row("Kafka to SQLite, bulk", {"rows/s": 1.0}), Row("MySQL to Kafka, bulk", {"rows/s": 2.0})),
    result("latency", Row("commit to Kafka, 2000/s", {"p50 ms": 1.0}), Row("commit to Kafka, 200/s", {"p50 ms": 1.0})),
    result(
        "growth",
        Row("base", GROWTH),
        *(Row(axis, {**GROWTH, "value": value}) for axis in ("rows", "size", "columns") for value in (10.0, 20.0)),
    ),
    result("catch-up", Row("oltp, 2000/s live", BEHIND, "", SERIES)),
    result("starts", Row("thl --help", {"ms": 100.0})),
    result(
        "peers",
        Row(
            "MySQL to Kafka, bulk: another", {"rows/s": 5.0, "CPU s/M a": 1.0, "CPU s/M b": 2.0, "CPU s/M broker": 4.0}
        ),
        Row("MySQL to Kafka, bulk: ours", {"rows/s": 10.0, "CPU s/M producer": 1.0}),
        Row("commit to Kafka: another", {"p50 ms": 5.0}),
    ),
    result("tls", Row("plain, bulk", {"rows/s": 10.0}), Row("TLS, bulk", {"rows/s": 9.0})),
    result("semi-sync", Row("one client, semi_sync on", {"p50 ms": 7.0})),
]


def test_every_part_has_its_table() -> None:
    found = rendered(EVERYTHING)
    assert found["machine"] == "processor two cores."
    assert list(found)[1:] == ["throughput", "latency", "growth", "catch-up", "starts", "tls", "semi-sync", "peers"]
    assert found["throughput"].index("MySQL to Kafka") < found["throughput"].index("Kafka to SQLite")
    assert found["latency"].index("200/s") < found["latency"].index("2000/s")
    assert "| TLS, bulk | 9 | 0.90 | 1 |" in found["tls"]
    assert "| one client, semi_sync on | 7 |" in found["semi-sync"]
    assert "| MySQL to Kafka, bulk: another | 5 | 3 | 4 | 0.50 | 1 |" in found["peers"]
    assert "| commit to Kafka: another | 5 | 1 |" in found["peers"]
    assert "| rows a transaction 10 |" in found["growth"]
    assert all("before: 0.10." in text for part, text in found.items() if part != "machine")


def test_part_without_measurements_has_no_table() -> None:
    assert list(rendered(EVERYTHING[4:5])) == ["machine", "starts"]
    assert rendered([]) == {}


def test_plots_are_drawn(tmp_path: Path) -> None:
    found = draw(EVERYTHING, tmp_path)
    assert [path.name for path in found] == ["growth.png", "catch-up.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in found)
