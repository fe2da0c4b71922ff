"""Nanoseconds per unit, by pytest-benchmark: the median of many rounds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.bench.micro.registry import Micro

SECONDS = 0.4  # for each
OPTIONS = (
    "--benchmark-enable --benchmark-disable-gc --benchmark-min-rounds=5 --benchmark-warmup=on "
    f"--benchmark-warmup-iterations=3 --benchmark-max-time={SECONDS} --benchmark-quiet -q --no-header"
)


def measure(benchmarks: Iterable[Micro], part: str) -> dict[str, float]:
    """Nanoseconds per unit of each benchmark; a failing one is reported and omitted."""
    units = {each.name: each.units for each in benchmarks}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "times.json")
        command = [sys.executable, "-m", "pytest", str(Path(__file__).parent), f"--benchmark-json={result}"]
        ran = subprocess.run([*command, *OPTIONS.split(), "-k", part], check=False, capture_output=True, text=True)
        if ran.returncode:
            print(ran.stdout[-4000:], ran.stderr[-1000:], file=sys.stderr)
        found = json.loads(result.read_text())["benchmarks"]
    medians = {each["extra_info"]["name"]: each["stats"]["median"] for each in found}
    return {name: medians[name] * 1e9 / units[name] for name in units if name in medians}
