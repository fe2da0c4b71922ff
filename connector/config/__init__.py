"""The configuration: typed sections, loading (YAML, environment, `--set`) and the generated reference.

- `model`: `Config`, the sections as one model; `Metrics`; the fields that were renamed.
- `section`: the base of sections, and common field types.
- `secret_files`: secrets in files of their own.
- `source`: the section `source`.
- `filters`: the section `source.filters`.
- `snapshot`: the section `source.snapshot`.
- `records`: the section `source.records`.
- `kafka`: the sections `kafka` and `registry`.
- `publish`: the section `publish`.
- `apply`: the sections `target` and `apply`.
- `relay`: the section `relay`.
- `serve`: the section `serve`.
- `target_url`: checks and reads `target.url`.
- `loading`: reads file, environment and `--set`, and remembers the origin of each value.
- `yaml_text`: parses YAML.
- `starter`: the commented file of `thl init`.
- `reference`: docs/configuration.md, and the YAML that `thl config` prints.
"""

from __future__ import annotations

from connector.config.apply import Apply, Target
from connector.config.filters import Filters, Mask, TableRule
from connector.config.kafka import Kafka, Registry
from connector.config.loading import load
from connector.config.model import Config, Metrics
from connector.config.publish import Publish, Shard
from connector.config.records import RecordStore
from connector.config.relay import Relay
from connector.config.snapshot import InitialLoad
from connector.config.source import Source

__all__ = [
    "Apply", "Config", "Filters", "InitialLoad", "Kafka", "Mask", "Metrics", "Publish", "RecordStore", "Registry",
    "Relay", "Shard", "Source", "TableRule", "Target", "load",
]  # fmt: skip
