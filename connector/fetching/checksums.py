"""Compares each fetched file with its SHA-256 in `checksums.txt` before it is used.

`make pins` rewrites that file (`tests.tools.pins`).
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
    """Return `folder/file` → SHA-256 in hexadecimal digits, from the file in sha256sum's format."""
    lines = (line.split("  ", 1) for line in FILE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: digest for digest, name in lines}


def check(file: Path, name: str) -> None:
    """Compare a fetched file with its recorded checksum.

    Args:
        file: the fetched file.
        name: `folder/file`, its name in `checksums.txt`.

    Raises:
        SandboxError: the checksum differs, or none is recorded for the name.
    """
    found = digest(file)
    if _met:
        _met[-1][name] = found
        return
    known = recorded().get(name)
    if known is None:
        raise SandboxError(
            "no checksum is recorded for a file: it is not used",
            hint="run make pins, and review its changes",
            file=name,
        )
    if found != known:
        raise SandboxError("the checksum of a file is wrong: it is not used", file=name, sha256=found, recorded=known)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def is_recording() -> bool:
    """Return True while checksums are recorded instead of compared."""
    return bool(_met)


@contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Accept every file that is fetched in the context; yields `folder/file` → SHA-256, filled meanwhile."""
    _met.append({})
    try:
        yield _met[-1]
    finally:
        _met.pop()


def write(found: dict[str, str]) -> None:
    """Record these checksums; other checksums of the same folders are removed."""
    folders = {name.partition("/")[0] for name in found}
    kept = {name: known for name, known in recorded().items() if name.partition("/")[0] not in folders}
    FILE.write_text(_HEAD + "".join(f"{known}  {name}\n" for name, known in sorted((kept | found).items())))
    recorded.cache_clear()
