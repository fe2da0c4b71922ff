"""Puts each mutant into a copy of the project and runs its tests: survivors are named, and the exit code is 1."""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutant import Mutant, Verdict, copy_of, judge, mutants, unmutated


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; default: every mutant")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the project at work at once")
    parser.add_argument("--no-servers", action="store_true", help="only those whose tests need no servers")
    chosen = parser.parse_args()
    wanted = [
        mutant
        for mutant in mutants()
        if (not chosen.names or any(name in mutant.name for name in chosen.names))
        and not (chosen.no_servers and mutant.servers)
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(chosen.jobs):
            copies.put(copy_of(Path(folder, str(number))))
        first = copies.get()
        sound = unmutated(wanted, first)
        copies.put(first)
        if sound.returncode:
            print("the tests fail without any mutant:", sound.stdout[-4000:], sound.stderr[-2000:], sep="\n")
            return 1

        def judged(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                verdict, end = judge(mutant, copy)
            finally:
                copies.put(copy)
            print(f"{verdict.value:9}{mutant.name}", flush=True)
            if verdict is not Verdict.KILLED:
                print("    " + end.replace("\n", "\n    "), flush=True)
            return verdict

        with ThreadPoolExecutor(chosen.jobs) as workers:
            verdicts = list(workers.map(judged, wanted))
    count = {verdict: verdicts.count(verdict) for verdict in Verdict}
    print(", ".join(f"{number} {verdict.value}" for verdict, number in count.items()))
    return int(count[Verdict.KILLED] != len(wanted))


if __name__ == "__main__":
    sys.exit(main())
