"""Spark's JVM with an archive of its classes, and with one that it must refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from connector.fetching import class_archive

STARTED: Final = """
import os, sys
from pathlib import Path
from connector.config.apply import Apply
from connector.fetching import class_archive
from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from connector.spark.session import SparkRun

os.environ["JAVA_HOME"] = str(java_home())
jars = tuple(spark_kafka_jars())
archive, order = sys.argv[1:]
if order == "reversed":
    jars = jars[::-1]
find = (lambda _: class_archive.options(Path(archive))) if archive else class_archive.find_options
with SparkRun(Apply(heap="512m"), "tests", jars=jars, jvm_options=find) as session:
    jvm = session.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    maps = Path(f"/proc/{jvm}/maps").read_text()
    print("mapped" if "/spark.jsa" in maps else "not mapped", session.spark.range(3).count())
    print("pandas" in sys.modules)
"""


@pytest.fixture(scope="module")
def archive() -> Path:
    return class_archive.make()


def started(archive: Path | str = "", order: str = "") -> tuple[str, str, str]:
    """Start Spark with the archive; returns whether the JVM uses it, whether pandas was imported, and other output."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(archive), order], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    mapped, pandas, *more = done.stdout.splitlines()
    return mapped, pandas, "\n".join(more) + done.stderr


def test_jvm_maps_the_archive_and_the_driver_imports_no_pandas(archive: Path) -> None:
    assert archive.stat().st_size > 50 << 20
    assert started() == ("mapped 3", "False", "")


LONG = {"marks": pytest.mark.long}


@pytest.mark.parametrize(
    "damage", ["not an archive", pytest.param("missing", **LONG), pytest.param("of another class path", **LONG)]
)
def test_jvm_starts_silently_without_an_archive_that_does_not_fit(archive: Path, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "spark.jsa"
    match damage:
        case "not an archive":
            file.write_text("not an archive\n" * 10_000)
        case "of another class path":
            file = archive
    order = "reversed" if file == archive else ""
    assert started(file, order) == ("not mapped 3", "False", "")
