"""`python -m tests.bench.render`: puts results as tables into docs/performance.md and as plots into docs/img.

Tables go between `<!-- bench:NAME -->` and `<!-- /bench -->`; a part that was not measured stays as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.bench.machine import ROOT
from tests.bench.markdown import marked, replaced
from tests.bench.plots import draw
from tests.bench.result import FOLDER, load
from tests.bench.tables import rendered


@click.command()
@click.option("--from", "folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True)
@click.option("--document", type=click.Path(path_type=Path), default=ROOT / "docs" / "performance.md")
@click.option("--images", type=click.Path(path_type=Path), default=ROOT / "docs" / "img")
@click.option("--dry", is_flag=True, help="Only print the tables.")
def main(*, folder: Path, document: Path, images: Path, dry: bool) -> None:
    """Render tables and plots."""
    results = load(folder)
    tables = rendered(results)
    if not tables:
        sys.exit(f"{folder} holds no results")
    text = document.read_text()
    for part, table in tables.items():
        if dry or part not in marked(text):
            print(f"## {part}\n\n{table}\n")
        else:
            text = replaced(text, part, table)
            print(f"{part}: into {document}")
    if not dry:
        document.write_text(text)
        print(*draw(results, images), sep="\n")


if __name__ == "__main__":
    main()
