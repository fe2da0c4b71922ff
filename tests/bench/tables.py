"""The tables, and the results that they are made from. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tests.bench.markdown import Column, cases, machine, provenance, table
from tests.bench.result import Result, Row, comparable

OURS = ("producer", "driver", "JVM", "workers")  # the applier has three: Spark's Python workers are the last
SERVERS = ("mysqld", "broker", "postgres")


def throughput(results: Sequence[Result]) -> str:
    """Rates and memory, then CPU by process."""
    rows = dict(sorted(cases(results).items(), key=lambda item: _STAGES.index(item[0].partition(",")[0])))
    rates = [
        Column("rows/s, steady", "rows/s"),
        Column("rows/s, whole run", "whole run rows/s"),
        *(Column(f"peak MB {name}", f"peak MB {name}") for name in OURS),
        Column("peak MB, shared pages once", "MB together"),
        Column("% that survives the collapse", "survive %"),
    ]
    shares = [Column(name, f"CPU s/M {name}") for name in (*OURS, *SERVERS)]
    totals = {case: [_with_totals(row) for row in repeats] for case, repeats in rows.items()}
    return "\n\n".join(
        (
            table(rows, rates),
            "CPU seconds per million rows in the steady state, ours and the servers' (two cores are two a second):",
            table(totals, [Column("ours in all", "its own"), *shares]),
            provenance(results),
        )
    )


_STAGES = ("MySQL to Kafka", "Kafka to PostgreSQL", "Kafka to SQLite")


def latency(results: Sequence[Result]) -> str:
    """Percentiles, then CPU by process."""
    rows = dict(sorted(cases(results).items(), key=lambda item: (_rate(item[0]), item[0])))
    times = [Column(f"{cut} ms", f"{cut} ms") for cut in ("p50", "p95", "p99")]
    shares = [Column(name, f"CPU % {name}") for name in (*OURS, *SERVERS)]
    to_target = {case: repeats for case, repeats in rows.items() if "PostgreSQL" in case}
    return "\n\n".join(
        (
            table(rows, [*times, Column("committed/s", "committed/s")]),
            "CPU meanwhile, in percent of one core:",
            table(to_target, shares),
            provenance(results),
        )
    )


def _rate(case: str) -> int:
    found = re.search(r"(\d+)/s", case)
    return int(found[1]) if found else 0


def growth(results: Sequence[Result]) -> str:
    """Every point's time per row and memory."""
    rows = {
        (case, value): [row for row in repeats if row.figures["value"] == value]
        for case, repeats in cases(results).items()
        for value in sorted({row.figures["value"] for row in repeats})
    }
    named = {f"{_AXES.get(case, case)} {value:,.0f}": repeats for (case, value), repeats in rows.items()}
    columns = [
        Column("producer µs/row", "producer µs/row"),
        Column("its CPU", "producer CPU µs/row"),
        Column("applier µs/row", "applier µs/row"),
        Column("its CPU", "applier CPU µs/row"),
        *(Column(f"peak MB {name}", f"{name} peak MB") for name in OURS),
    ]
    return f"{table(named, columns)}\n\n{provenance(results)}"


_AXES = {"base": "rows", "size": "rows a transaction"}


def catch_up(results: Sequence[Result]) -> str:
    """Time, resources and quality of the estimate."""
    columns = [
        Column("rows behind", "rows behind"),
        Column("s to the first row", "s to first row"),
        Column("s to caught up", "s to caught up"),
        Column("rows/s", "rows/s"),
        *(Column(f"peak MB {name}", f"peak MB {name}") for name in OURS),
        Column("JVM's memory, end by middle", "MB JVM, end by middle"),
        Column("driver's", "MB driver, end by middle"),
        Column("estimated by real time left", "estimate by real"),
    ]
    return f"{table(cases(results), columns)}\n\n{provenance(results)}"


def starts(results: Sequence[Result]) -> str:
    """Start-up times in milliseconds."""
    return f"{table(cases(results), [Column('ms', 'ms')])}\n\n{provenance(results)}"


def tls(results: Sequence[Result]) -> str:
    """Rates with TLS beside those without."""
    rows = cases(results)
    columns = [
        Column("rows/s, steady", "rows/s"),
        Column("CPU s per million rows: producer", "CPU s/M producer"),
        Column("mysqld", "CPU s/M mysqld"),
        Column("broker", "CPU s/M broker"),
        Column("peak MB producer", "peak MB producer"),
    ]
    references = {case: case.replace("TLS", "plain") for case in rows}
    return f"{table(rows, columns, references)}\n\n{provenance(results)}"


def semi_sync(results: Sequence[Result]) -> str:
    """What a commit on the source takes without and with semi-synchronous replication."""
    columns = [*(Column(f"{cut} ms", f"{cut} ms") for cut in ("p50", "p95", "p99")), Column("commits/s", "commits/s")]
    return f"{table(cases(results), columns)}\n\n{provenance(results)}"


def peers(results: Sequence[Result]) -> str:
    """Other programs with the same backlog on the same servers, beside the connector: cases are `what, kind: who`."""
    rows = {case: [_with_totals(row) for row in repeats] for case, repeats in sorted(cases(results).items())}
    rates = {case: repeats for case, repeats in rows.items() if "rows/s" in repeats[0].figures}
    times = {case: repeats for case, repeats in rows.items() if case not in rates}
    columns = [
        Column("rows/s, steady", "rows/s"),
        Column("rows/s, whole run", "whole run rows/s"),
        Column("CPU s per million rows: its own", "its own"),
        *(Column(name, f"CPU s/M {name}") for name in SERVERS),
        Column("peak MB of its own", "peak"),
    ]
    shown = table(rates, columns, {case: f"{case.partition(':')[0]}: ours" for case in rates})
    cuts = [Column(f"{cut} ms", f"{cut} ms") for cut in ("p50", "p95", "p99")]
    found = [f"{shown}\n\nThe ratio is that of the steady rates, to ours."] if rates else []
    return "\n\n".join([*found, *([table(times, cuts)] if times else []), provenance(results)])


def _with_totals(row: Row) -> Row:
    """A row with totals: CPU and memory of everything that is not a server."""
    figures = dict(row.figures)
    for total, prefix in (("its own", "CPU s/M "), ("peak", "peak MB ")):
        found = [
            value
            for name, value in row.figures.items()
            if name.startswith(prefix) and name[len(prefix) :] not in SERVERS
        ]
        if found:
            figures[total] = sum(found)
    return Row(row.case, figures)


TABLES: Mapping[str, Callable[[Sequence[Result]], str]] = {
    "throughput": throughput,
    "latency": latency,
    "growth": growth,
    "catch-up": catch_up,
    "starts": starts,
    "tls": tls,
    "semi-sync": semi_sync,
    "peers": peers,
}


def rendered(results: Sequence[Result]) -> dict[str, str]:
    """Part → its tables, for the measured parts; `machine` → the machine of the newest."""
    found = {part: comparable(results, part) for part in TABLES}
    tables = {part: TABLES[part](of_part) for part, of_part in found.items() if of_part}
    newest = max((of_part[-1] for of_part in found.values() if of_part), key=lambda result: result.at, default=None)
    return {"machine": machine(newest), **tables} if newest else {}
