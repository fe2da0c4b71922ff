"""Reads the measures of our processes, and of the run's folder, again and again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

import psutil

from connector.background import in_background
from connector.demo.stage import Worker
from tests.faults import killing
from tests.faults.growth import Lives, Sample, measured
from tests.faults.rig import CLOCK

EVERY: Final = 5.0  # seconds between two readings
SERVERS: Final = ("kafka", "mysql", "replica", "postgres")  # folders whose files grow by design


@dataclass(frozen=True, slots=True)
class Watched:
    """What is read now.

    Args:
        folder: of the run.
        workers: our processes.
        applier: the one with a JVM.
    """

    folder: Path
    workers: Sequence[Worker]
    applier: Worker


@contextmanager
def watching(watched: Callable[[], Watched], lives: Lives) -> Iterator[None]:
    """Read the measures in a thread while in the context; each reading is a line of `samples.jsonl`, too."""
    began = CLOCK.monotonic()

    def watch(ended: Event) -> None:
        with (watched().folder / "samples.jsonl").open("w") as file:
            while not ended.wait(EVERY):
                at = CLOCK.monotonic() - began
                for name, identity, values in readings(watched()):
                    lives.add(name, identity, Sample(at, values))
                    file.write(json.dumps({"at": round(at, 1), "name": name, "id": str(identity), **values}) + "\n")
                file.flush()

    with in_background("growth", watch, leave=None):
        yield


def readings(watched: Watched) -> Iterator[tuple[str, object, dict[str, float]]]:
    """Yield name, identity and measures of each process that runs, and of the folder; of Spark's workers the sums."""
    for worker in watched.workers:
        with suppress(psutil.Error):  # it was killed meanwhile; its next life has a reading of its own
            if worker.pid is not None:
                process = psutil.Process(worker.pid)
                yield worker.name, (process.pid, process.create_time()), measured([process])
    for java in killing.family(watched.applier, killing.JVM)[:1]:
        with suppress(psutil.Error):
            identity = java.pid, java.create_time()
            yield "Spark's JVM", identity, measured([java])
            yield "Spark's workers", identity, measured(java.children(recursive=True))
    yield "the run's folder", watched.folder, usage(watched.folder)


def usage(folder: Path) -> dict[str, float]:
    """The number of files in a folder, and their bytes, without those of the servers."""
    sizes = list[int]()
    for path, folders, files in os.walk(folder):  # which passes over what is removed meanwhile
        folders[:] = [name for name in folders if name not in SERVERS]
        for name in files:
            with suppress(FileNotFoundError):
                sizes.append(Path(path, name).lstat().st_size)
    return {"files": float(len(sizes)), "bytes": float(sum(sizes))}
