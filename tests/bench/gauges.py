"""A worker's own metrics, over HTTP."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gauges:
    """Reads them from the port that the worker was given."""

    port: int

    def read(self) -> dict[str, float]:
        """Metric → value of its first sample; empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return {}  # not up yet
        found: dict[str, float] = {}
        for line in lines:
            name, brace, rest = line.partition("{")
            if brace and not line.startswith("#"):
                found.setdefault(name, float(rest.rpartition("} ")[2]))
        return found

    def value(self, name: str) -> float:
        """One of them; -1 while it cannot be told."""
        return self.read().get(name, -1.0)
