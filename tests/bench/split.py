"""`python -m tests.bench.split FILE apply …`: `thl apply …`, which notes after each commit where its CPU went.

FILE gets a line of JSON a commit: rows so far, and CPU seconds so far of the process, of the thread that applies, and
of that thread within the PostgreSQL target. What librdkafka's, Spark's and py4j's threads need is in the first alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from connector.cli import main
from connector.targets.postgres.target import PostgresTarget

WRITING = ("stage", "set_metadata", "begin_snapshot", "ddl", "discard", "exclude", "leave_out", "commit")


class Split:
    """Counts the CPU seconds of a target's methods; appends a line after each commit.

    Args:
        file: gets the lines.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._writing = 0.0
        self._rows = 0

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The same method, counted."""

        @wraps(method)
        def run(target: PostgresTarget, *args: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return method(target, *args, **named)
            finally:
                self._writing += time.thread_time() - began

        return run

    def noted(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        """A commit after which a line is written."""

        @wraps(commit)
        def run(target: PostgresTarget, position: Any, events: Any) -> None:
            commit(target, position, events)
            self._rows += events.rows
            line = {"rows": self._rows, "process": time.process_time(), "applying": time.thread_time()}
            with self._file.open("a") as file:
                print(json.dumps(line | {"writing": self._writing}), file=file)

        return run


if __name__ == "__main__":
    split = Split(Path(sys.argv.pop(1)))
    for name in WRITING:
        setattr(PostgresTarget, name, split.counted(getattr(PostgresTarget, name)))
    PostgresTarget.commit = split.noted(PostgresTarget.commit)  # type: ignore[method-assign]
    main()
