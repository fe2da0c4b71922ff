"""Files that their owner alone may read, and the password of a data folder that is kept in one."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

PASSWORD_FILE = "password"  # noqa: S105 - a name


def kept_password(file: Path) -> str:
    """The password in a file; a new random one where there is no file yet."""
    if not file.exists():
        write_private(file, secrets.token_hex(16))
    return file.read_text()


def write_private(file: Path, text: str) -> None:
    """Replace a file in one step by one that nobody else may read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")  # mode 0600 from the first byte
    with os.fdopen(handle, "w") as new:
        new.write(text)
    Path(name).replace(file)
