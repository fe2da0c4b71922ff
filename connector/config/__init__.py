"""The configuration: its model, loading (YAML, environment, `--set`), and the generated reference."""

from __future__ import annotations

from connector.config.loading import load
from connector.config.model import Config

__all__ = ["Config", "load"]
