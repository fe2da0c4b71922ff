"""`make wheel`: builds the wheel into dist/, and tests it in an empty environment outside the checkout.

The wheel is built from the tracked files alone, gets the manylinux tag that its modules allow (auditwheel), holds no
sources of compiled modules, and is installed beside the pinned packages of the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Final

from tests.tools import wheels

ROOT: Final = Path(__file__).parents[2]
DIST: Final = ROOT / "dist"
_CONFIGURATION: Final = """service: shop
source: {host: mysql.example, user: thl, password: secret}
kafka: {bootstrap: "kafka.example:9092"}
target: {url: "sqlite:///target.db"}
"""
_SOURCES: Final = {".c", ".h", ".pyx", ".pxd"}
_NEEDED: Final = ("spark_apps/apply.py", "connector/schemas/fragment.avsc", "connector/schemas/load.avsc",
                  "connector/py.typed", "connector/fetching/checksums.txt",
                  "connector/serve/templates/service.html", "connector/serve/static/style.css")  # fmt: skip


class Unfit(Exception):
    """Raised when the wheel lacks something or has too much."""


def build(work: Path) -> Path:
    """Build the wheel and set its tag; return the file in dist/."""
    source, repairing = work / "source", work / "repairing"
    _run("git", "-C", ROOT, "checkout-index", "--all", f"--prefix={source}/")
    _run(*_pip(sys.executable, "wheel"), "--no-index", "--no-deps", "--no-build-isolation", "-w", work, source)
    (built,) = work.glob("*.whl")
    venv.create(repairing, with_pip=True)
    python = repairing / "bin" / "python"
    requirements = ROOT / "tests" / "tools" / "package.txt"
    _run(*_pip(python, "install"), "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", requirements)
    path = f"{repairing / 'bin'}{os.pathsep}{os.environ['PATH']}"
    _run(python, "-m", "auditwheel", "repair", "--wheel-dir", work / "repaired", built, PATH=path)
    (repaired,) = (work / "repaired").glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return repaired.replace(DIST / repaired.name)


def contents(wheel: Path) -> list[str]:
    """The names of the compiled modules in a wheel.

    Raises:
        Unfit: it holds sources of compiled modules, lacks a file, or has no manylinux tag.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if sources := [name for name in names if Path(name).suffix in _SOURCES]:
        raise Unfit(f"{wheel.name} holds {', '.join(sources[:3])}")
    if missing := [name for name in _NEEDED if name not in names]:
        raise Unfit(f"{wheel.name} lacks {', '.join(missing)}")
    if "manylinux" not in wheel.name:
        raise Unfit(f"{wheel.name} has no manylinux tag")
    modules = [name.partition(".")[0].replace("/", ".") for name in names if name.endswith(".so")]
    if len(modules) != len(list(ROOT.glob("connector/**/*.pyx"))):
        raise Unfit(f"{wheel.name} has {len(modules)} compiled modules")
    return modules


def try_out(wheel: Path, modules: list[str], work: Path) -> None:
    """Install the wheel in an empty environment, run its commands there, and import each compiled module."""
    place = work / "empty"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    links = [f"--find-links={wheels.collect(group)}" for group in ("build", "run", "spark")]
    _run(*_pip(python, "install"), "--no-index", *links, wheel)
    _run(python, "-m", "pip", "check")
    (work / "thl.yaml").write_text(_CONFIGURATION)
    for command in (["--help"], ["config"], ["sandbox", "status"]):
        _run(place / "bin" / "thl", *command, cwd=work)
    _run(
        python,
        "-c",
        "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]",
        *modules,
        cwd=work,
    )


def _pip(python: str | Path, command: str) -> list[str | Path]:
    return [python, "-m", "pip", command, "--quiet", "--disable-pip-version-check"]


def _run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(map(str, command))
        raise Unfit(f"`{shown}` ended with exit code {done.returncode}:\n{done.stdout[-3000:]}")


def main() -> int:
    """Build and test the wheel; print its contents."""
    try:
        with tempfile.TemporaryDirectory(prefix="thl-wheel-") as folder:
            wheel = build(Path(folder))
            modules = contents(wheel)
            try_out(wheel, modules, Path(folder))
    except Unfit as error:
        print(error, file=sys.stderr)
        return 1
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.relative_to(ROOT)}: {size:.1f} MB, {len(modules)} compiled modules; runs in an empty environment")
    return 0


if __name__ == "__main__":
    sys.exit(main())
