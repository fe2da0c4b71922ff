"""`make model`: scenarios of the protocol by the million, on all cores, of each trouble as many.

What ends badly is made short and shown, with the command that runs it again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.unit.log.model.loads.machine import LOAD_TROUBLES, LoadModel
from tests.unit.log.model.machine import ProtocolModel
from tests.unit.log.model.simulation.scenario import Ending, Model, Rng, ending, shortest
from tests.unit.log.model.troubles import TROUBLES

ALL_TROUBLES = (*TROUBLES, *LOAD_TROUBLES)
Range = tuple[str, int, int]  # trouble, the first number, how many
AT_ONCE = 100


def model_of(trouble: str) -> Model:
    """The model that knows a trouble, at the beginning of a run."""
    return LoadModel(trouble) if trouble in LOAD_TROUBLES else ProtocolModel(trouble)


def outcome(trouble: str, number: int) -> Ending | None:
    """Run one scenario.

    Returns:
        What went wrong, if anything did.
    """
    return ending(model_of(trouble), Rng(f"{trouble} {number}"))


def run(trouble: str, first: int, count: int) -> None:
    """Run some scenarios.

    Raises:
        AssertionError, ConnectorError, …: what went wrong; it notes the scenario that ends so, made short.
    """
    for number in range(first, first + count):
        if bad := outcome(trouble, number):
            error = shortest(lambda: model_of(trouble), bad)
            steps = [f"{name}({', '.join(['service', *map(repr, arguments)])})" for name, arguments in error.steps]
            command = f"python -m tests.unit.log.model.scenarios --trouble '{trouble}' --first {number} --scenarios 1"
            error.error.add_note(
                "\n".join(
                    [
                        f"service = {type(model_of(trouble).service).__name__}({trouble!r})",
                        *steps,
                        "end(service)",
                        command,
                    ]
                )
            )
            raise error.error


def main() -> None:
    """Ends the process: 0 when all were run, 1 at the first that ends badly."""
    parser = argparse.ArgumentParser(prog="python -m tests.unit.log.model.scenarios", description=__doc__)
    parser.add_argument("--scenarios", type=int, default=1_000_000, help="how many, all troubles together")
    parser.add_argument("--first", type=int, help="the first one's number; without it others each time")
    parser.add_argument("--trouble", choices=ALL_TROUBLES, action="append", help="only these")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    first = random.SystemRandom().randrange(10**12) if options.first is None else options.first
    ranges = list(_ranges(options.trouble or ALL_TROUBLES, first, options.scenarios))
    columns = (TextColumn("scenarios from {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
    with progress, get_context("spawn").Pool(options.processes) as pool:
        task = progress.add_task(str(first), total=options.scenarios)
        try:
            for count in pool.imap_unordered(_run_range, ranges):
                progress.advance(task, count)
        except Exception as error:  # noqa: BLE001 - whatever the scenario ended in
            progress.stop()
            sys.exit(f"{type(error).__name__}: {error}\n" + "\n".join(getattr(error, "__notes__", ())))


def _ranges(troubles: Sequence[str], first: int, scenarios: int) -> Iterator[Range]:
    """Some of each trouble in turn, so that a run that ends early has some of each."""
    each = -(-scenarios // len(troubles))
    for done in range(0, each, AT_ONCE):
        for number, trouble in enumerate(troubles):
            mine = min(each, scenarios - number * each)
            if done < mine:
                yield trouble, first + done, min(AT_ONCE, mine - done)


def _run_range(these: Range) -> int:
    run(*these)
    return these[2]


if __name__ == "__main__":
    main()
