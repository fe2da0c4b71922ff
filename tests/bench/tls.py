"""`python -m tests.bench.tls`: the producer with required and verified TLS to the source, compared with none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import workload
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import site
from tests.bench.throughput import produced
from tests.support.certificates import write_certificates

KINDS = ("bulk", "oltp")


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Row changes of each backlog.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS)
@out_option
def main(*, rows: int, repeats: int, kinds: Sequence[str], out: Path) -> None:
    """Measure plain and TLS in turns, on the same binary log; exit 1 if a figure is void."""
    sheet = Sheet(out, "tls", {"rows": rows})
    for kind in kinds:
        with write_certificates() as files, site(files.settings) as place:
            backlog = workload.fill(place.connect, kind, rows)
            for repeat in range(repeats):
                plain = produced(place, place.service(f"plain{repeat}"), kind, backlog)
                sheet.add(Row(f"plain, {kind}", plain.figures, plain.void))
                with place.connect() as connection, connection.cursor() as cursor:
                    service = place.service(f"tls{repeat}", source={"tls": True, "tls_ca": str(files.authority)})
                    cursor.execute("SET GLOBAL require_secure_transport = ON")
                    try:
                        safe = produced(place, service, kind, backlog)
                    finally:
                        cursor.execute("SET GLOBAL require_secure_transport = OFF")
                sheet.add(Row(f"TLS, {kind}", safe.figures, safe.void))
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
