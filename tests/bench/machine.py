"""The conditions of a figure beside the code: the machine and the versions of all programs."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from connector.fetching.java import java_home
from connector.fetching.mysql_programs import mysql_programs
from connector.fetching.versions import KAFKA_VERSION, POSTGRES_VERSION

ROOT = Path(__file__).parents[2]
PACKAGES = ("confluent-kafka", "pyspark", "pyarrow", "psycopg", "PyMySQL")


def describe() -> dict[str, str]:
    """Names and values for readers."""
    return {
        "processor": f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores",
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GiB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "Java": _java(),
        "MySQL": _mysql(),
        "Kafka": KAFKA_VERSION,
        "PostgreSQL": POSTGRES_VERSION,
        **{package: version(package) for package in PACKAGES},
        "commit": _output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]).strip() or "unknown",
        "code": _code(),
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def _field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "unknown")


def _java() -> str:
    release = java_home() / "release"
    lines = release.read_text().splitlines() if release.exists() else []
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("JAVA_VERSION=")), "unknown")


def _mysql() -> str:
    said = _output([*mysql_programs().command("mysqld"), "--no-defaults", "--version"])
    return said.partition("Ver ")[2].split()[0] if "Ver " in said else "unknown"


def _code() -> str:
    """The git identity of the measured code, unaffected by other changes of a commit."""
    tree = _output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD:connector"]).strip() or "unknown"
    changed = _output(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "--", "connector"])
    return f"{tree} + changes" if changed else tree


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
