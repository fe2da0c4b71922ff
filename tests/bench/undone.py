"""`python -m tests.bench.undone`: apply many transactions, undo some, apply again; compare each time.

Exit 1 unless the target is what the source was: after the first part, after all, after the undo, and after all again.
"""

from __future__ import annotations

import subprocess
import sys

import click

from connector.config.loading import load as load_config
from connector.config.model import Config
from connector.demo.stage import Worker
from connector.targets.open import read_position
from tests.bench import workload
from tests.bench.proof import differs, fingerprint
from tests.bench.site import CLOCK, site

PATIENCE = 900.0  # seconds
LOOK = 2.0


def applied(config: Config, *workers: Worker) -> tuple[int, str]:
    """Wait until the target equals the source.

    Returns:
        Its seqno, and the fingerprint of its rows.
    """
    give_up = CLOCK.monotonic() + PATIENCE
    while True:
        CLOCK.sleep(LOOK)
        for worker in workers:
            worker.check()
        if read_position(config.target.url.get_secret_value(), config.service) is not None and not differs(config):
            break
        if CLOCK.monotonic() > give_up:
            raise SystemExit(f"after {PATIENCE:.0f} s: {differs(config)}")
    return seqno_of(config), fingerprint(config)


def seqno_of(config: Config) -> int:
    """The target's seqno."""
    found = read_position(config.target.url.get_secret_value(), config.service)
    return -1 if found is None else found.seqno


@click.command()
@click.option("--transactions", default=50_000, show_default=True)
@click.option("--back", default=20_000, show_default=True, help="So many of them are undone.")
def main(transactions: int, back: int) -> None:
    """Apply, undo, and apply again."""
    with site() as place:
        producer, _ = place.worker("produce")
        applier, _ = place.worker("apply")
        config = load_config(applier.config)
        first = transactions - back
        workload.oltp(place.connect, first=0, transactions=first, connections=1)
        producer.start()
        applier.start()
        middle, there = applied(config, producer, applier)
        workload.oltp(place.connect, first=first * 3, transactions=back, connections=1)
        end, whole = applied(config, producer, applier)
        applier.stop()
        began = CLOCK.monotonic()
        subprocess.run(
            [sys.executable, "-m", "connector", "undo", "--config", str(applier.config), "--to-seqno", str(middle)],
            check=True,
        )
        seconds = CLOCK.monotonic() - began
        undone = (seqno_of(config), fingerprint(config)) == (middle, there)
        applier.start()
        again = applied(config, producer, applier) == (end, whole)
        for worker in (applier, producer):
            worker.stop()
    print(
        f"{transactions} transactions of {workload.CHANGES} row changes, {end - middle} events back in {seconds:.0f} s"
    )
    print(f"equal to the source in the middle and at the end; undone equal: {undone}; forward again equal: {again}")
    sys.exit(0 if undone and again and end - middle == back else 1)


if __name__ == "__main__":
    main()
