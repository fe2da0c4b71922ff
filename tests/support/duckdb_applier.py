"""Applies the history of `mysql_applier` to a DuckDB target, from the target's position on: a program that tests kill.

python -m tests.support.duckdb_applier FILE [claim]

With `claim` it claims the target and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from connector.clock import SystemClock
from connector.targets.duckdb.target import DuckDbTarget
from tests.support.mysql_applier import apply

if __name__ == "__main__":
    made = DuckDbTarget(Path(sys.argv[1]), SystemClock(), audit=True)
    if sys.argv[2:] == ["claim"]:
        made.claim("shop")
    else:
        apply(made)
    made.close()
