"""Headless Chromium, from the distribution: looks at pages as a user does, and makes their pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from connector.fetching.apt import unpack
from connector.fetching.cache import Cache

SUITE: Final = "bookworm"
NAME: Final = f"chromium-{SUITE}"


def chromium_folder() -> Path:
    """The folder with the unpacked packages.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return Cache().ensure(
        NAME, lambda at: unpack(at, NAME, suite=SUITE, packages=["chromium", "chromium-driver", "fonts-dejavu-core"])
    )
