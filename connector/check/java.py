"""Checks the Java that `thl apply` starts Spark with, where Spark looks for it: JAVA_HOME, else the PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connector.check.result import Check, failed, ok
from connector.errors import ConfigError

LEAST: Final = 17  # Spark 4.0's
PATIENCE: Final = 30.0  # seconds; a JVM starts in one on a quiet machine
_REMEDY: Final = f"install Java {LEAST} or newer (only `thl apply` and Spark need it), and set JAVA_HOME to its folder"


def check_java(environ: Mapping[str, str]) -> Check:
    """Check that there is a Java, of a version that Spark runs on.

    Args:
        environ: its JAVA_HOME and PATH count.
    """
    home = environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH", ""))
    if program is None:
        return failed("java", ConfigError("no java on the PATH, and JAVA_HOME is not set", hint=_REMEDY))
    try:
        done = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        place = f"{program} (from JAVA_HOME)" if home else program
        return failed("java", ConfigError(f"{place} does not run: {error}", hint=_REMEDY))
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", done.stderr)
    if version is None or int(version[1]) < LEAST:
        found = f"Java {version[1]}" if version else "no Java of a known version"
        return failed("java", ConfigError(f"{program} is {found}", hint=_REMEDY))
    return ok("java", f"Java {version[1]}, {program}")
