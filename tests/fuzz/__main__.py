"""`make fuzz`: reads damaged logs until the time is over.

Each ends in transactions or in one of our errors: no other exception, no crash, no silence, no more memory than is
granted. Which lines of Python a log reaches guides the search; the compiled code tells none, but it calls Python for
all that is rare. What the reader does not bear is left in the working directory: run it again by naming the file.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["connector"]):
    from tests.fuzz.reading import read_events, read_raw, read_sql, read_whole

from tests.fuzz.logs import changed, resealed, seeds

LONGEST = 1 << 17  # bytes of a log
SECONDS = 30  # that one may take: the machine may do something else meanwhile


def read(data: bytes) -> None:
    """Read a log; anything but a connector error is raised."""
    read_whole(data)
    read_raw(data)
    read_sql(data)
    read_events(data)


def mutated(data: bytes, longest: int, seed: int) -> bytes:
    """The log with further damage."""
    draw = random.Random(seed)
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = changed(data, draw.choice(SEEDS), draw)
    return data[:longest]


SEEDS = seeds()


def main() -> None:
    """Fuzz and exit: 0 if the time is over, another code if a log raised an unexpected error."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--megabytes", type=int, default=1024, help="memory of the process")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("log", nargs="?", type=Path, help="one that was left, alone")
    options = parser.parse_args()
    if options.log:
        print(*(reader(options.log.read_bytes()) for reader in (read_whole, read_raw, read_sql, read_events)))
        return
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate([*SEEDS, *map(resealed, SEEDS)]):
            Path(corpus, str(number)).write_bytes(data)
        limits = {
            "max_total_time": options.seconds,
            "rss_limit_mb": options.megabytes,
            "seed": options.seed,
            "max_len": LONGEST,
            "timeout": SECONDS,
        }
        words = [sys.argv[0], corpus, *(f"-{name}={value}" for name, value in limits.items()), "-print_final_stats=1"]
        atheris.Setup(words, read, custom_mutator=mutated)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
