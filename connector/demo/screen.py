"""Shows the demo on a terminal: live progress, then a short report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from connector.clock import SystemClock
from connector.demo.probe import probe
from connector.demo.scenario import DemoResult, Scale, Scenario


def show(folder: Path, scale: Scale, console: Console) -> bool:
    """Run the demo in `folder` and show its progress; return True if source and target are equal."""
    clock = SystemClock()
    started = clock.monotonic()

    def report(line: str) -> None:
        console.print(f"[dim]{clock.monotonic() - started:6.1f}s[/dim]  {line}")

    scenario = Scenario(folder, scale, clock, report)
    try:
        with Live(get_renderable=lambda: _now(scenario), console=console, refresh_per_second=4, transient=True):
            outcome = scenario.run()
    finally:
        if scenario.stage:
            scenario.stage.close()
    _report(console, outcome, clock.monotonic() - started, folder)
    return outcome.equal


def _now(scenario: Scenario) -> Table:
    """Return the progress line: the positions of source and target."""
    table = Table.grid(padding=(0, 2))
    if scenario.stage and scenario.workload:
        state = probe(scenario.stage.target)
        table.add_row(
            "source",
            f"{scenario.workload.transactions:,} transactions",
            "target",
            f"seqno {state.seqno:,}, {state.rows:,} rows",
            "consistent" if state.consistent else "initial load",
        )
    return table


def _report(console: Console, outcome: DemoResult, seconds: float, folder: Path) -> None:
    events = outcome.state.seqno + 1
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("transactions of the workload", f"{outcome.transactions:,} in {outcome.load_seconds:.0f} s")
    table.add_row("events applied", f"{events:,}, {'each exactly once' if outcome.once else 'NOT each exactly once'}")
    table.add_row("row changes applied", f"{outcome.state.rows:,}")
    table.add_row(
        "latency, commit to target",
        f"p50 {outcome.percentile(50):.0f} ms, p95 {outcome.percentile(95):.0f} ms, p99 {outcome.percentile(99):.0f} ms"
        " (before the first kill)",
    )
    table.add_row("kill -9", f"{outcome.kills}")
    for compared in outcome.verified.tables:
        table.add_row(f"{compared.name}", f"{compared.rows:,} rows, {'equal' if compared.equal else 'DIFFERENT'}")
    table.add_row("took", f"{seconds:.0f} s")
    table.add_row("look at it", f"sqlite3 {folder / 'target.db'} 'select count(*) from \"shop.orders\"'")
    console.print(table)
    if outcome.equal:
        console.print(f"[bold green]source and target are equal at seqno {outcome.state.seqno}[/bold green]")
    else:
        console.print(f"[bold red]source and target are NOT equal at seqno {outcome.state.seqno}[/bold red]")
        for compared in outcome.verified.tables:
            for difference in compared.differences[:5]:
                console.print(f"  {compared.name}: {difference}")
