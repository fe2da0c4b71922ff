"""Former home of `load`, which earlier versions' docs/spark.md imports: use `connector.config`."""

from __future__ import annotations

import warnings

from connector.config import load

__all__ = ["load"]

warnings.warn(
    "connector.settings is now connector.config: from connector.config import load", DeprecationWarning, stacklevel=2
)
