"""Prometheus and its `promtool`, from the distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from connector.fetching.apt import unpack
from connector.fetching.cache import Cache

SUITE: Final = "bookworm"  # Prometheus 2.42
NAME: Final = f"prometheus-{SUITE}"


def prometheus_folder() -> Path:
    """The folder with the unpacked packages.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return Cache().ensure(NAME, lambda at: unpack(at, NAME, suite=SUITE, packages=["prometheus"]))


def prometheus(program: str) -> list[str]:
    """The command prefix of `prometheus` or `promtool`.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return [str(prometheus_folder() / "usr" / "bin" / program)]  # needs the C library alone
