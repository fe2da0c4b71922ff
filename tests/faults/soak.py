"""`python -m tests.faults.soak`: kill everything many times under load, then compare source and target.

Every named point of `connector.failpoints` is met three times at least, and producer, driver, JVM, executor, broker,
MySQL and PostgreSQL die at random moments; with `--cluster` also the master and the workers of a Spark cluster. A seed
fixes what dies and in which order; the load and the clock remain what they are. Exit code 1 when source and target are
not equal at the end of a round, or anything is left behind.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from connector.verify import Report
from tests.faults import killing, plan
from tests.faults.rig import CLOCK, Rig, rig

LEAST_ROUNDS: Final = 3
TARGETS: Final = ("sqlite", "postgres")


def main(arguments: Sequence[str]) -> int:
    """Run the soak; 0 if every comparison is equal."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="at least so many; never fewer than three at each point")
    parser.add_argument("--rounds", type=int, help="exactly so many rounds for each target, instead")
    parser.add_argument("--minutes", type=float, default=inf, help="after so long compare each target at once")
    parser.add_argument("--target", choices=(*TARGETS, "both"), default="both")
    parser.add_argument("--cluster", action="store_true", help="apply on a Spark cluster of this machine: two workers")
    parser.add_argument("--partitions", type=int, default=1, help="partitions of the log")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where servers and logs live; default: a new one in /tmp")
    options = parser.parse_args(arguments)
    targets = TARGETS if options.target == "both" else (options.target,)
    folder = options.folder or Path(mkdtemp(prefix="thl-soak-"))
    spark = "a Spark cluster" if options.cluster else "local Spark"
    print(f"seed {options.seed}, {spark}, {options.partitions} partition(s), everything lies in {folder}", flush=True)

    began = CLOCK.monotonic()
    kills: dict[str, Counter[str]] = {}
    proofs: list[str] = []
    failed = False
    for target, rounds in _planned(options, targets).items():
        kills[target] = Counter()
        try:
            for proof in _soak(options, folder / target, target, rounds, kills[target]):
                proofs.append(proof)  # what is proved stays proved when a later round fails
        except (AssertionError, KeyboardInterrupt) as failure:
            proofs.append(f"{target}: NOT PROVED: {failure or 'interrupted'}")
            failed = True
    _table(kills, proofs, CLOCK.monotonic() - began)
    return int(failed)


def _planned(options: argparse.Namespace, targets: Sequence[str]) -> dict[str, list[plan.Round]]:
    """The rounds of each target; several targets share the kills of the producer."""
    for number in count(options.rounds or LEAST_ROUNDS):
        shares = [number // len(targets) + (at < number % len(targets)) for at in range(len(targets))]
        planned = {
            target: list(plan.rounds(target, options.seed, number, producer_rounds=share, cluster=options.cluster))
            for target, share in zip(targets, shares, strict=True)
        }
        if options.rounds or sum(one.kills for rounds in planned.values() for one in rounds) >= options.kills:
            return planned
    raise AssertionError("unreachable: every round has kills")


def _soak(
    options: argparse.Namespace, folder: Path, target: str, rounds: Sequence[plan.Round], kills: Counter[str]
) -> Iterator[str]:
    with rig(folder, target, seed=options.seed, on_cluster=options.cluster, partitions=options.partitions) as made:
        made.kills = kills
        end = CLOCK.monotonic() + options.minutes * 60
        for number, one in enumerate(rounds):
            if CLOCK.monotonic() >= end:
                break
            if number:
                made.renew()
            made.tell(f"round {number + 1} of {len(rounds)} with {target}: {one.kills} kills")
            report = _round(made, one, end)
            rows = sum(table.rows for table in report.tables)
            yield f"{target}: {len(report.tables)} tables, {rows:,} rows equal at seqno {report.seqno}"


def _round(made: Rig, one: plan.Round, end: float) -> Report:
    made.resume()
    made.applier.start()
    if one.snapshot:
        killing.crash(made, *one.snapshot)
    else:
        made.producer.start()
    made.until(lambda: made.witness.look().loaded, "the initial load")
    for number, step in enumerate(one.steps):
        if CLOCK.monotonic() >= end:
            break
        _step(made, step)
        if number % 4 == 3:
            if not made.applier.running:
                killing.again(made, "apply")
            made.progress()
    if not made.applier.running:
        killing.again(made, "apply")
    for _ in range(one.executors if CLOCK.monotonic() < end else 0):
        killing.executor(made)
    return made.finish()


def _step(made: Rig, step: plan.Step) -> None:
    """Start the applier with its failpoint armed; meanwhile the other side is killed."""
    dying = None
    if "." in step.applier:
        dying = killing.arm(made, step.applier, step.passage)
    elif not made.applier.running:
        killing.again(made, "apply")
    if "." in step.other:
        killing.crash(made, f"{step.other}:{step.other_passage}")
    elif step.other:
        CLOCK.sleep(step.moment)
        at_random(made, step.other)
    if dying is not None:
        killing.crashed(made, dying, step.applier)
    elif step.applier:
        made.progress()
        CLOCK.sleep(step.moment)
        at_random(made, step.applier)


def at_random(made: Rig, name: str) -> None:
    """Kill a process or a server by its name, at this moment."""
    match name:
        case "producer":
            killing.process(made, made.producer, name)
        case "driver":
            killing.process(made, made.applier, name)
        case "JVM":
            killing.jvm(made)
        case "broker":
            killing.server(made, made.kafka, name)
        case "MySQL":
            killing.server(made, made.mysql, name)
        case "PostgreSQL":
            assert made.postgres
            killing.server(made, made.postgres, name)
        case "executor":
            killing.executor(made)
        case "worker":
            killing.machine(made)
        case "master":
            killing.master(made)
        case _:
            killing.backend(made)


def _table(kills: dict[str, Counter[str]], proofs: Sequence[str], seconds: float) -> None:
    names = sorted({name for counted in kills.values() for name in counted}, key=lambda name: ("." not in name, name))
    print(f"\n{'kill -9 of':36}" + "".join(f"{target:>10}" for target in kills))
    for name in names:
        print(f"{name:36}" + "".join(f"{counted[name] or '':>10}" for counted in kills.values()))
    print(f"{'all':36}" + "".join(f"{counted.total():>10}" for counted in kills.values()))
    for proof in proofs:
        print(proof)
    print(f"{sum(counted.total() for counted in kills.values())} kills in {seconds / 60:.0f} minutes")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
