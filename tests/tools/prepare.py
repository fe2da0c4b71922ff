"""`python3 -m tests.tools.prepare GOAL`: prepares what a `make` goal needs.

    venv      the environment with everything pinned
    build     that, and the compiled modules in place
    demo      what `thl demo` runs with, and nothing else
    fetch     `build`, and everything that tests start

Whatever does not depend on each other runs side by side. Logs lie in `.venv/.steps/log`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.tools import wheels
from tests.tools.progress import Progress
from tests.tools.steps import Step, StepFailed, run

ROOT: Final = Path(__file__).parents[2]
LEAST: Final = (3, 11)
GOALS: Final = ("venv", "build", "demo", "fetch")

_SERVERS: Final = {"java": 2.0, "kafka": 26.0, "spark": 9.0, "mysql": 7.0}
_TEST_SERVERS: Final = {"postgres": 2.0, "mariadb": 3.0, "mariadb-binlog": 4.0, "kafka-tools": 2.0}
_OPTIONAL: Final = {"mysql56": 2.0, "registry": 2.0}  # what not every machine can fetch; their tests are skipped
_JAVA_NEEDED: Final = {"kafka", "kafka-tools", "spark", "postgres", "mariadb", "registry"}
_STANDARD_LIBRARY: Final = {"mysql"}  # what is fetched while packages are still being installed


def plan(goal: str, venv: Path) -> list[Step]:
    """The steps of a goal, each after those that it needs."""
    python = str(venv / "bin" / "python")
    groups = ["run", "spark"] if goal == "demo" else ["run", "spark", "dev"]
    steps = [Step("python", [sys.executable, "-m", "venv", str(venv)], seconds=3, key=_python())]
    before = "python"
    for group, seconds in {"build": 2.0, "run": 10.0, "spark": 15.0, "dev": 5.0}.items():
        if group != "build" and group not in groups:
            continue
        needs = ["build packages"] if group == "spark" else ["python"]
        key = wheels.name(group)
        steps.append(
            Step(f"{group} wheels", [python, "-m", "tests.tools.wheels", "collect", group], needs, seconds, key)
        )
        # One at a time: each reads what the others have installed.
        command = [python, "-m", "tests.tools.wheels", "install", group]
        steps.append(Step(f"{group} packages", command, [f"{group} wheels", before], 3, key))
        before = f"{group} packages"
    steps.append(_checkout(python, before))
    if goal != "venv":
        command = [python, "setup.py", "-q", "build_ext", "--inplace"]
        steps.append(Step("compiled modules", command, ["build packages"], 30))
    if goal in ("demo", "fetch"):
        steps += _fetch(python, _SERVERS, "connector.fetching.fetch")
    if goal == "fetch":
        steps += _fetch(python, _TEST_SERVERS | _OPTIONAL, "tests.support.servers.fetch")
        command = [python, "-m", "connector.fetching.fetch", "class-archive"]
        steps.append(Step("class archive", command, ["compiled modules", "spark packages", "java", "spark"], 25))
    return steps


def _fetch(python: str, things: dict[str, float], module: str) -> list[Step]:
    return [
        Step(
            thing,
            [python, "-m", module, thing],
            ["java", "spark packages"]
            if thing in _JAVA_NEEDED
            else ["python"]
            if thing in _STANDARD_LIBRARY
            else ["run packages"],
            seconds,
            optional=thing in _OPTIONAL,
        )
        for thing, seconds in things.items()
    ]


def _checkout(python: str, after: str) -> Step:
    """The checkout itself, in place; its modules are compiled by a step of their own."""
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    return Step(
        "checkout",
        [python, "-m", "pip", "install", *options, "--editable", str(ROOT)],
        [after],
        3,
        _digest([ROOT / "pyproject.toml"]),
        environment={"THL_BUILD_PURE": "1"},
    )


def _python() -> str:
    return f"{sys.version} {sys.base_prefix}"


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def main() -> int:
    """Prepare a goal in the environment that `$VENV` names."""
    if sys.version_info < LEAST:
        print("Python 3.11 or newer is needed: make PYTHON=python3.12", file=sys.stderr)
        return 1
    (goal,) = sys.argv[1:]
    venv = Path(os.environ.get("VENV", ".venv")).absolute()
    try:
        run(plan(goal, venv), venv / ".steps", Progress())
    except StepFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for stamp in [".installed"] * (goal != "demo") + [".built"] * (goal in ("build", "fetch")):
        (venv / stamp).touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
