"""One line of progress on a terminal; elsewhere a line for each step that took some time."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final, TextIO

_BAR: Final = 24
_WORTH_TELLING: Final = 1.0


class Progress:
    """Shows the progress of the steps, and which ones are running.

    Args:
        out: output stream.
    """

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._begun = time.monotonic()
        self._shown = False

    def show(self, share: float, waiting: Sequence[str]) -> None:
        """Redraw the line: a share from 0 to 1, and the names of the running steps."""
        if not self._terminal:
            return
        full = round(_BAR * share)
        bar = "█" * full + "░" * (_BAR - full)
        text = f"{bar} {share:4.0%}  {time.monotonic() - self._begun:3.0f} s  waiting for {', '.join(waiting)}"
        print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", file=self._out, flush=True)
        self._shown = True

    def ended(self, name: str, seconds: float) -> None:
        """Print the end of a step if there is no progress line."""
        if not self._terminal and seconds > _WORTH_TELLING:
            self.say(f"{name}: {seconds:.0f} s")

    def say(self, text: str) -> None:
        """Print a line above the progress."""
        self.clear()
        print(text, file=self._out, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._out, flush=True)
            self._shown = False
