"""Reads a worker's own metrics over HTTP."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gauges:
    """Reads the metrics at the worker's port."""

    port: int

    def read(self) -> dict[str, float]:
        """Metric → value of its first sample; empty while the worker does not answer."""
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
        """One metric; -1 if it is unknown."""
        return self.read().get(name, -1.0)
