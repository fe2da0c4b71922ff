"""Former home of `load`: use `connector.config`."""

from __future__ import annotations

from connector.config import load

__all__ = ["load"]
