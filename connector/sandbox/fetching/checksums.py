"""Compares each fetched file with its SHA-256 in `checksums.txt` before it is used.

`make pins` writes that file anew (`tests.tools.pins`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from connector.errors import SandboxError

FILE: Final = Path(__file__).with_name("checksums.txt")
_HEAD: Final = (
    "# SHA-256 of what the sandbox, tests and benchmarks fetch: folder of the cache/file. Written by `make pins`.\n"
)

_met: list[dict[str, str]] = []  # while recording


@cache
def recorded() -> dict[str, str]:
    """`folder/file` → SHA-256 in hexadecimal digits; the file is one of sha256sum's."""
    lines = (line.split("  ", 1) for line in FILE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: digest for digest, name in lines}


def check(file: Path, name: str) -> None:
    """Compare a fetched file with what is recorded.

    Args:
        file: as it was fetched.
        name: `folder/file`, as it is recorded.

    Raises:
        SandboxError: it is another, or none is recorded under that name.
    """
    found = digest(file)
    if _met:
        _met[-1][name] = found
        return
    known = recorded().get(name)
    if known is None:
        raise SandboxError(
            f"no checksum is recorded for {name}: it is not used", hint="make pins, and look at what it changes"
        )
    if found != known:
        raise SandboxError(f"{name} is not the file that is recorded: it is not used", sha256=found, recorded=known)


def digest(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def is_recording() -> bool:
    """Checksums are being recorded, not compared."""
    return bool(_met)


@contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Take what is fetched in it for what is wanted; given: `folder/file` → SHA-256 as they are met."""
    _met.append({})
    try:
        yield _met[-1]
    finally:
        _met.pop()


def write(found: dict[str, str]) -> None:
    """Record these; what else was recorded for the same folders is forgotten."""
    folders = {name.partition("/")[0] for name in found}
    kept = {name: known for name, known in recorded().items() if name.partition("/")[0] not in folders}
    FILE.write_text(_HEAD + "".join(f"{known}  {name}\n" for name, known in sorted((kept | found).items())))
    recorded.cache_clear()
