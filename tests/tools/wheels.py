"""Collects the wheels of a group in the cache, and installs them from there without an index.

    python -m tests.tools.wheels collect run      asks the index once; each file must have a hash that hashes.txt names
    python -m tests.tools.wheels install run      into the environment whose Python runs this

`hashes.txt` has the pinned packages in groups. A changed pin is another folder in the cache, never a mixture.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Final

from connector.fetching.cache import Cache

HASHES: Final = Path(__file__).parents[2] / "hashes.txt"
GROUP: Final = "# group: "


def pins(group: str) -> list[str]:
    """The lines of a group, with their hashes, in an order that does not depend on pip."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in HASHES.read_text().splitlines():
        if line.startswith(GROUP):
            current = found.setdefault(line.removeprefix(GROUP), [])
        elif line and not line.startswith("#"):
            current.append(line)
    return found[group]


def name(group: str) -> str:
    """The name of a group's folder in the cache: one per interpreter and set of pins."""
    digest = hashlib.sha256("\n".join(pins(group)).encode()).hexdigest()[:16]
    return f"wheels-{group}-cp{sys.version_info[0]}{sys.version_info[1]}-{digest}"


def collect(group: str) -> Path:
    """The folder with a group's wheels; built by pinned tools where only a source distribution exists."""

    def fetch(folder: Path) -> None:
        requirements = folder / "requirements.txt"
        requirements.write_text("\n".join(pins(group)) + "\n")
        options = ["--no-deps", "--use-pep517", "--no-build-isolation", "--require-hashes"]
        if group == "spark":  # jars are compressed already
            options.append("--config-settings=--build-option=--compression=stored")
        _pip("wheel", *options, "--wheel-dir", str(folder), "--requirement", str(requirements))

    return Cache().ensure(name(group), fetch)


def install(group: str) -> None:
    """Install a group's wheels. Python compiles modules when they are imported."""
    wheels = [str(file) for file in sorted(collect(group).glob("*.whl"))]
    _pip("install", "--no-index", "--no-deps", "--no-compile", *wheels)


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", words[0], "--quiet", *words[1:]], check=True)


def main() -> int:
    """Run the command that the module's docstring describes; pip has printed its errors."""
    action, group = sys.argv[1:]
    try:
        {"collect": collect, "install": install}[action](group)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
