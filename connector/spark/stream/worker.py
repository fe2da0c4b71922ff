"""Spark's Python workers: what makes a task of theirs cheap.

Run as a program, this module is Spark's daemon (`spark.python.daemon.module`), which forks the workers: what tasks
import is loaded before it forks, once for all of them.
"""

from __future__ import annotations

import gc
import logging
import zipimport
from functools import cache


@cache
def prepare() -> None:
    """Prepare this worker for many short tasks.

    After each task Spark collects all garbage, which walks every object of every module (50 ms), and before each it
    forgets what is in its zip files, which are then read again (90 ms; Python 3.11).

    Log lines would reach the terminal as they are, for each of librdkafka's attempts to connect: without the form, the
    redaction and the limits of `connector.logs`. What they tell is in the task's error.
    """
    logging.getLogger("connector").addHandler(logging.NullHandler())
    zipimport.zipimporter.invalidate_caches = _nothing  # type: ignore[method-assign,assignment]
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)  # as in `thl produce`


def _nothing(_importer: zipimport.zipimporter) -> None:
    """Keep what is known of a zip file: those of Spark do not change."""


if __name__ == "__main__":
    from pyspark import daemon

    import connector.spark.stream.range_task
    import connector.spark.stream.socket_sink  # noqa: F401 (for the workers)

    prepare()
    daemon.manager()  # type: ignore[no-untyped-call]
