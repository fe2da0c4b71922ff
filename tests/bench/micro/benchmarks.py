"""All benchmarks, in the order of the data flow."""

from __future__ import annotations

from tests.bench.micro import capture, encode, publish, reassemble, thl, write  # noqa: F401 (they register)
from tests.bench.micro.registry import BENCHMARKS, Micro


def find(part: str = "") -> list[Micro]:
    """The benchmarks whose name contains `part`.

    Raises:
        LookupError: none does.
    """
    found = [each for name, each in BENCHMARKS.items() if part in name]
    if not found:
        raise LookupError(f"no benchmark is called {part}: " + " ".join(BENCHMARKS))
    return found
