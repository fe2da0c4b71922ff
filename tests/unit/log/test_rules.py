"""The rules of the log are documented, and an error of a broken one has its name and its place."""

from __future__ import annotations

import re
from pathlib import Path

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.rules import BrokenRule, Rule, broken, damaged

DOCUMENT = Path(__file__).parents[3] / "docs" / "internals" / "log.md"


def test_document_lists_every_rule_with_its_sentence() -> None:
    section = DOCUMENT.read_text().split("## Every broken rule has a name")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    assert listed == [(rule.value, rule.message) for rule in Rule]


def test_error_of_a_broken_rule_has_its_name_and_place() -> None:
    error = broken(HistoriesDiffer, Rule.OTHER_LOG, hint="do this", at="t-0@1")
    assert (error.hint, error.where) == ("do this", {"rule": "other_log", "at": "t-0@1"})


def test_damaged_bytes_name_their_rule_or_undecodable() -> None:
    assert damaged(IndexError("x"), at="t-0@1").where == {"rule": Rule.UNDECODABLE, "at": "t-0@1"}
    error = damaged(BrokenRule(Rule.ROW_COUNT, rows=3), seqno=7)
    assert isinstance(error, LogDamaged)
    assert error.where == {"rule": Rule.ROW_COUNT, "seqno": 7, "rows": 3}
