"""Each benchmark once, as a test; measured where pytest-benchmark is enabled, as `python -m tests.bench.micro` does."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.bench.micro.benchmarks import find
from tests.bench.micro.registry import Micro


@pytest.mark.parametrize("each", find(), ids=lambda each: each.name)
def test_micro(benchmark: BenchmarkFixture, each: Micro) -> None:
    benchmark.extra_info["name"] = each.name
    benchmark(each.prepare())
