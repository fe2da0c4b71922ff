"""A worker that is prepared does not walk its modules, or read its zip files again, for each task."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from tests.support.clock import PATIENCE

PROGRAM = """
import gc, importlib, json, sys
archive, prepared = sys.argv[1], sys.argv[2] == "prepared"
sys.path.insert(0, archive)
import module_of_zip
from connector.spark.stream import worker

if prepared:
    worker.prepare()
frozen = gc.get_freeze_count()
new = [[] for _ in range(10_000)]
if prepared:
    worker.prepare()  # as the next task does
known = sys.path_importer_cache[archive]._files
del known["module_of_zip.py"]
importlib.invalidate_caches()  # as Spark does before each task
again = "module_of_zip.py" in (sys.path_importer_cache[archive]._files or ())
print(json.dumps({"frozen": frozen, "later": gc.get_freeze_count(), "read_again": again}))
"""


LOGGING = """
import logging, sys
from connector.spark.stream import worker

if sys.argv[1] == "prepared":
    worker.prepare()
logging.getLogger("connector.kafka.client").error("FAIL: connection refused")
"""


def run(tmp_path: Path, how: str) -> dict[str, Any]:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("module_of_zip.py", "")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(archive), how], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_modules_are_taken_from_the_collector_once(tmp_path: Path) -> None:
    found = run(tmp_path, "prepared")
    assert found["frozen"] > 5_000
    assert found["later"] <= found["frozen"]


def test_zip_files_are_not_read_again_for_each_task(tmp_path: Path) -> None:
    assert not run(tmp_path, "prepared")["read_again"]
    # That is what Python would do, and what `prepare` is for.
    assert run(tmp_path, "plain")["read_again"]


def test_lines_of_librdkafka_do_not_reach_the_terminal() -> None:
    """For each attempt to connect there is one; the applier reports the error of the task instead."""
    said = {
        how: subprocess.run(
            [sys.executable, "-c", LOGGING, how], capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stderr
        for how in ("prepared", "plain")
    }
    assert "FAIL" not in said["prepared"]
    # That is what Python would do with the line.
    assert "FAIL" in said["plain"]
