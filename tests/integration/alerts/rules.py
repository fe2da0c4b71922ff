"""The alert rules with shorter times: a copy, in which nothing else differs.

An alert waits for seconds instead of minutes (`for`), and looks at shorter times (ranges, offsets, ages). The hour that
is left until a purge stays: a source can be told to purge that soon.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import yaml

from tests.support.deployed import DOCKER

RULES: Final = DOCKER / "prometheus" / "alerts.yaml"
WAITS: Final = {"1m": "1s", "2m": "2s", "5m": "3s", "10m": "4s", "30m": "5s"}
RANGES: Final = {"10m": "25s", "30m": "40s", "1d": "12s", "7d": "60s", "15d": "60s"}
AGES: Final = {"300": "6", "600": "12", "86400": "12"}
_TIME: Final = re.compile(r"(?<=\[)\w+(?=\])|(?<=offset )\w+|(?<=[<>] )\d+\b(?![.e])|(?<=<= )\d+\b")
_NO_TIME: Final = {"0", "1", "3", "10", "3600"}  # of other comparisons


def names() -> set[str]:
    """The alerts of the file."""
    return {rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}


def write_shortened(file: Path) -> Path:
    """Write the copy; a time that is not in the tables above is a KeyError."""
    document = yaml.safe_load(RULES.read_text())
    for group in document["groups"]:
        for rule in group["rules"]:
            rule["expr"] = _TIME.sub(lambda found: _shorter(found[0]), rule["expr"])
            if "for" in rule:
                rule["for"] = WAITS[rule["for"]]
    file.write_text(yaml.safe_dump(document))
    return file


def _shorter(time: str) -> str:
    return time if time in _NO_TIME else {**RANGES, **AGES}[time]
