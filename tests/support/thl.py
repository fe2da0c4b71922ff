"""`python -m tests.support.thl`: the `thl` command, with or without its installed script.

With CLOCK_OFF_BY in the environment its machine's clock is so many seconds wrong.
"""

import os

from connector.cli import main
from connector.clock import SystemClock

off = int(os.environ.get("CLOCK_OFF_BY", "0")) * 1_000_000
right = SystemClock.now
SystemClock.now = lambda self: right(self) + off  # type: ignore[method-assign]

main()
