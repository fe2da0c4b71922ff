"""The peers' results as Markdown tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.markdown import Column, cases, provenance, table
from tests.bench.result import Result, Row

_SERVERS = ("mysqld", "broker", "postgres")


def peers(results: Sequence[Result]) -> str:
    """Rates, CPU and memory, then latencies, each with its ratio to the connector; then missing ones with reasons."""
    found = cases(results)
    rates = {case: [_summed(row) for row in rows] for case, rows in found.items() if "rows/s" in rows[0].figures}
    times = {case: rows for case, rows in found.items() if "p50 ms" in rows[0].figures}
    columns = [
        Column("rows/s, steady", "rows/s"),
        Column("rows/s, whole run", "whole run rows/s"),
        Column("CPU s/M rows", "CPU s/M"),
        Column("the servers'", "servers CPU s/M"),
        Column("peak MB", "peak MB"),
    ]
    cuts = [Column(f"{cut} ms", f"{cut} ms") for cut in ("p50", "p95", "p99")]
    parts = [
        _beside_ours(rates, columns) if rates else "",
        _beside_ours(times, cuts) if times else "",
        provenance(results),
    ]
    return "\n\n".join(part for part in parts if part)


def _beside_ours(rows: Mapping[str, Sequence[Row]], columns: Sequence[Column]) -> str:
    """Groups cases of one kind, each compared with the connector's."""
    ordered = dict(sorted(rows.items(), key=lambda item: _kind(item[0])))
    ours = {_kind(case): case for case in rows if case in {_kind(case), f"{_kind(case)}: ours"}}
    return table(ordered, columns, {case: ours[_kind(case)] for case in ordered if _kind(case) in ours})


def _kind(case: str) -> str:
    return case.partition(":")[0]


def _summed(row: Row) -> Row:
    """Adds totals: a peer's processes together, and the servers together."""
    cpu = {name.removeprefix("CPU s/M "): value for name, value in row.figures.items() if name.startswith("CPU s/M ")}
    peak = {name.removeprefix("peak MB "): value for name, value in row.figures.items() if name.startswith("peak MB ")}
    own = [value for name, value in cpu.items() if name not in _SERVERS]
    memory = [value for name, value in peak.items() if name not in _SERVERS]
    more = {"servers CPU s/M": sum(value for name, value in cpu.items() if name in _SERVERS)}
    more |= {"CPU s/M": sum(own)} if own else {}
    more |= {"peak MB": sum(memory)} if memory else {}
    return Row(row.case, row.figures | more, row.void)
