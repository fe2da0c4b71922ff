"""The steps that prepare a checkout."""

from __future__ import annotations

import subprocess
import sys

from tests.tools.prepare import ROOT, plan


def test_what_is_fetched_before_the_packages_needs_none() -> None:
    early = [
        step
        for step in plan("fetch", ROOT / ".venv")
        if step.needs == ["python"] and step.command[1] == "-m" and step.command[2].endswith(".fetch")
    ]
    assert [step.name for step in early] == ["mysql"]
    modules = {step.command[2] for step in early} | {"connector.fetching.mysql_programs"}
    for module in modules:
        subprocess.run([sys.executable, "-S", "-c", f"import {module}"], check=True, cwd=ROOT)
