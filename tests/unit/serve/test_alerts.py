"""The alert rules: made of declared metrics, and each fires when it should, and not when it should not.

The rules are run by promtool, which evaluates them over series that a test gives.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from connector.errors import SandboxError
from connector.metrics import DECLARED
from tests.support.servers.prometheus import prometheus

ROOT = Path(__file__).parents[3]
RULES = ROOT / "docker" / "prometheus" / "alerts.yaml"
DAY, HOURS = 86_400, 1440  # of seconds; minutes of a day
SERVICE = 'service="shop"'
TARGET = 'service="shop",target="target"'

NAN = "NaN " * 30

Series = dict[str, str]  # a series → its samples, one a minute, in promtool's notation

# Alert → series at which it fires, series at which it does not, and the minute at which both are looked at.
CASES: dict[str, tuple[Series, Series, int]] = {
    "ThlServeDown": ({'up{job="thl-serve"}': "1 0x20"}, {'up{job="thl-serve"}': "1 0 1x20"}, 10),
    "ThlServeAbsent": ({}, {f"thl_service_read_age_seconds{{{SERVICE}}}": "5x20"}, 10),
    "ThlNotRead": (
        {  # never read: there is nothing else of it
            f"thl_service_read_age_seconds{{{SERVICE}}}": "0+60x20",
            f"thl_service_read_stale{{{SERVICE}}}": "0 1x20",
        },
        {  # a long interval
            f"thl_service_read_age_seconds{{{SERVICE}}}": "300x20",
            f"thl_service_read_stale{{{SERVICE}}}": "0x20",
        },
        10,
    ),
    "ThlProducerDown": (
        {f"thl_service_producer_up{{{SERVICE}}}": "1 0x20"},
        {f"thl_service_producer_up{{{SERVICE}}}": "NaN 1x7 0x20"},  # a restart takes less than two minutes
        10,
    ),
    "ThlApplierDown": (
        {f"thl_service_applier_up{{{TARGET}}}": "1 0x20"},
        {f"thl_service_applier_up{{{TARGET}}}": "0 " + NAN},
        10,
    ),
    "ThlStateUnknown": (
        {f'thl_service_applier_state{{{TARGET},state="UNKNOWN"}}': "1x20"},
        {f'thl_service_applier_state{{{TARGET},state="UNKNOWN"}}': "1 1 1 0x20"},
        10,
    ),
    "ThlProducerLag": (
        {f"thl_service_producer_lag_seconds{{{SERVICE}}}": "301x20"},
        {f"thl_service_producer_lag_seconds{{{SERVICE}}}": "299x20"},
        10,
    ),
    "ThlProducerLagLarge": (
        {f"thl_service_producer_lag_seconds{{{SERVICE}}}": "601x20"},
        {f"thl_service_producer_lag_seconds{{{SERVICE}}}": "599x20"},
        10,
    ),
    "ThlApplierLag": (
        {f"thl_service_applier_lag_seconds{{{TARGET}}}": "301x20"},
        {f"thl_service_applier_lag_seconds{{{TARGET}}}": "299x20"},
        10,
    ),
    "ThlApplierLagLarge": (
        {f"thl_service_applier_lag_seconds{{{TARGET}}}": "601x20"},
        {f"thl_service_applier_lag_seconds{{{TARGET}}}": NAN},
        10,
    ),
    "ThlProducerStuck": (
        {
            f"thl_service_published_seqno{{{SERVICE}}}": "7x30",
            f"thl_service_producer_lag_events{{{SERVICE}}}": "1+10x30",
            f"thl_service_producer_up{{{SERVICE}}}": "1x30",
        },
        {  # nothing happens on the source
            f"thl_service_published_seqno{{{SERVICE}}}": "7x30",
            f"thl_service_producer_lag_events{{{SERVICE}}}": "0x30",
            f"thl_service_producer_up{{{SERVICE}}}": "1x30",
        },
        20,
    ),
    "ThlApplierStuck": (
        {  # whether an applier of SQLite runs is not known
            f"thl_service_applied_seqno{{{TARGET}}}": "7x30",
            f"thl_service_applier_lag_events{{{TARGET}}}": "1+10x30",
            f"thl_service_applier_up{{{TARGET}}}": NAN,
        },
        {  # it is slow, but goes on
            f"thl_service_applied_seqno{{{TARGET}}}": "7+1x30",
            f"thl_service_applier_lag_events{{{TARGET}}}": "1+10x30",
            f"thl_service_applier_up{{{TARGET}}}": "1x30",
        },
        20,
    ),
    "ThlRestarts": (
        {f"thl_service_applier_restarts{{{TARGET}}}": "1+1x40"},
        {f"thl_service_applier_restarts{{{TARGET}}}": "1x10 3x40"},
        35,
    ),
    "ThlPurgeSoon": (
        {f"thl_service_seconds_until_purge{{{SERVICE}}}": "3599x10"},
        {f"thl_service_seconds_until_purge{{{SERVICE}}}": "Inf " * 10},
        5,
    ),
    "ThlEventsDeleted": (
        {f"thl_service_applied_seqno{{{TARGET}}}": "7x10", f"thl_service_first_seqno{{{SERVICE}}}": "9x10"},
        {f"thl_service_applied_seqno{{{TARGET}}}": "7x10", f"thl_service_first_seqno{{{SERVICE}}}": "8x10"},
        5,
    ),
    "ThlPreparedXaOld": (
        {f"thl_service_prepared_since_seconds{{{SERVICE}}}": f"60x{HOURS + 60}"},
        {f"thl_service_prepared_since_seconds{{{SERVICE}}}": f"0x{HOURS + 60}"},
        HOURS + 30,
    ),
    "ThlTargetInconsistent": (
        {f'thl_service_inconsistent_because{{{TARGET},cause="rewind"}}': "1x60"},
        {
            f'thl_service_inconsistent_because{{{TARGET},cause="rewind"}}': "1x20 0x40",
            f'thl_service_inconsistent_because{{{TARGET},cause="channels"}}': "1x60",
        },
        40,
    ),
    "ThlCommitOpen": (
        {f'thl_service_inconsistent_because{{{TARGET},cause="channels"}}': "1x10"},
        {f'thl_service_inconsistent_because{{{TARGET},cause="channels"}}': "0 1 0 1 0 1 0 1 0 1 0"},
        7,
    ),
    "ThlSemiSyncOff": (
        {f"thl_service_semi_sync_on{{{SERVICE}}}": "0x10"},
        {f"thl_service_semi_sync_on{{{SERVICE}}}": "0 1x10"},
        7,
    ),
    "ThlLoadPaused": (
        {f'thl_service_load_paused{{{SERVICE},cause="replica_lag"}}': "1x60"},
        {f'thl_service_load_paused{{{SERVICE},cause="behind"}}': "1x60"},
        40,
    ),
    "ThlStageRestarts": (
        {f'thl_restarts_total{{{SERVICE},stage="apply"}}': "0+1x60"},
        {f'thl_restarts_total{{{SERVICE},stage="apply"}}': "0+0.1x60"},
        40,
    ),
    "ThlPublicationHeld": (
        {f'thl_replica_lagging_since_seconds{{{SERVICE},replica="db1:3306"}}': "60x20"},
        {f'thl_replica_lagging_since_seconds{{{SERVICE},replica="db1:3306"}}': "0x20"},
        10,
    ),
    "ThlVerifyDifferent": (
        {f"thl_verified_different_tables{{{TARGET}}}": "1x10"},
        {
            f"thl_verified_different_tables{{{TARGET}}}": "0x10",
            f"thl_service_compared_different{{{TARGET}}}": "0x10",
        },
        5,
    ),
    "ThlVerifyOld": (
        {f"thl_service_compared_seconds{{{TARGET}}}": f"60x{HOURS + 60}"},
        {  # the button was used long ago, but `thl verify --every` compares
            f"thl_service_compared_seconds{{{TARGET}}}": f"60x{HOURS + 60}",
            f"thl_verified_seconds{{{TARGET}}}": f"0+60x{HOURS + 60}",
        },
        HOURS + 30,
    ),
    "ThlRelayDiskLow": (
        {f"thl_relay_free_bytes{{{SERVICE}}}": "6e9x20", f"thl_relay_size_bytes{{{SERVICE}}}": "1e12x20"},
        {f"thl_relay_free_bytes{{{SERVICE}}}": "6e9x20", f"thl_relay_size_bytes{{{SERVICE}}}": "1e11x20"},
        10,
    ),
    "ThlJvmShortOfMemory": (
        {f"thl_jvm_collection_seconds_total{{{SERVICE}}}": "0+20x60"},
        {f"thl_jvm_collection_seconds_total{{{SERVICE}}}": "0+15x60"},
        40,
    ),
}

TWO = ('instance="a:8090",', 'instance="b:8090",')  # of two `thl serve` that read one service

# Alert, its series, the minute at which it is looked at, and how often it fires then.
FURTHER: list[tuple[str, Series, int, int]] = [
    (
        "ThlEventsDeleted",
        {
            f"{name}{{{instance}{labels}}}": value
            for instance in TWO
            for name, labels, value in (
                ("thl_service_applied_seqno", TARGET, "7x20"),
                ("thl_service_first_seqno", SERVICE, "9x20"),
            )
        },
        10,
        2,
    ),
    # One of two `thl serve` sees the source, and the other does not.
    (
        "ThlProducerStuck",
        {
            f"{name}{{{instance}{SERVICE}}}": value
            for instance, lag in zip(TWO, ("5x30", NAN), strict=True)
            for name, value in (
                ("thl_service_published_seqno", "7x30"),
                ("thl_service_producer_lag_events", lag),
                ("thl_service_producer_up", "1x30"),
            )
        },
        20,
        1,
    ),
    # `thl serve` or Prometheus has just begun.
    (
        "ThlProducerStuck",
        {
            f"thl_service_published_seqno{{{SERVICE}}}": "7x30",
            f"thl_service_producer_lag_events{{{SERVICE}}}": "5x30",
            f"thl_service_producer_up{{{SERVICE}}}": "1x30",
        },
        8,
        0,
    ),
    (
        "ThlApplierStuck",
        {
            f"thl_service_applied_seqno{{{TARGET}}}": "7x30",
            f"thl_service_applier_lag_events{{{TARGET}}}": "5x30",
            f"thl_service_applier_up{{{TARGET}}}": "1x30",
        },
        8,
        0,
    ),
    # `thl verify --every` has ended, does not come to an end, or goes on beside a button that was used once.
    ("ThlVerifyOld", {f"thl_verified_seconds{{{TARGET}}}": "60x60 stale"}, HOURS + 30, 1),
    ("ThlVerifyOld", {f"thl_verified_seconds{{{TARGET}}}": f"0x{HOURS + 60}"}, HOURS + 30, 1),
    ("ThlVerifyOld", {f"thl_verified_seconds{{{TARGET}}}": f"0x{HOURS - 60}"}, HOURS - 90, 0),
    # It has just begun.
    ("ThlVerifyOld", {f"thl_verified_seconds{{{TARGET}}}": f"_x{HOURS} 0x60"}, HOURS + 30, 0),
    # The button has taken over.
    (
        "ThlVerifyOld",
        {
            f"thl_verified_seconds{{{TARGET}}}": "60x60 stale",
            f"thl_service_compared_seconds{{{TARGET}}}": f"0+60x{HOURS + 60}",
        },
        HOURS + 30,
        0,
    ),
    # One of two targets was verified, and the other for ten days not: neither hides behind the other, or behind time.
    (
        "ThlVerifyOld",
        {
            f'thl_verified_seconds{{{SERVICE},target="a"}}': f"0+60x{HOURS + 60}",
            f'thl_verified_seconds{{{SERVICE},target="b"}}': "60x60 stale",
        },
        HOURS + 30,
        1,
    ),
    ("ThlVerifyOld", {f"thl_verified_seconds{{{TARGET}}}": "60x60 stale"}, 10 * HOURS, 1),
    # A server that starts again has forgotten what it found.
    ("ThlVerifyDifferent", {f"thl_service_compared_different{{{TARGET}}}": "1x5 stale"}, 60, 1),
    ("ThlVerifyDifferent", {f"thl_service_compared_different{{{TARGET}}}": "1x5 0x5 stale"}, 60, 0),
    # Without GTIDs, of a log whose events retention has deleted, no lag is known.
    (
        "ThlProducerStuck",
        {
            f"thl_service_published_seqno{{{SERVICE}}}": "7x30",
            f"thl_service_producer_up{{{SERVICE}}}": "1x30",
            f"thl_service_producer_lag_events{{{SERVICE}}}": "NaN " * 30,
            f'thl_service_producer_state{{{SERVICE},state="ONLINE:BEHIND"}}': "1x30",
        },
        25,
        1,
    ),
    # One of two targets was compared.
    (
        "ThlVerifyOld",
        {
            f'thl_service_compared_seconds{{{SERVICE},target="a"}}': f"0+60x{HOURS + 60}",
            f'thl_service_compared_seconds{{{SERVICE},target="b"}}': f"60x{HOURS + 60}",
        },
        HOURS + 30,
        1,
    ),
    ("ThlTargetInconsistent", {f'thl_service_inconsistent_because{{{TARGET},cause="load"}}': "1x60"}, 29, 0),
    ("ThlLoadPaused", {f'thl_service_load_paused{{{SERVICE},cause="purge"}}': "1x60"}, 29, 0),
    # Decided within the day.
    ("ThlPreparedXaOld", {f"thl_service_prepared_since_seconds{{{SERVICE}}}": f"7200x{HOURS + 60}"}, HOURS + 30, 0),
    ("ThlPublicationHeld", {f"thl_replica_lagging_since_seconds{{{SERVICE}}}": "60x20"}, 5, 0),
    ("ThlRelayDiskLow", {f"thl_relay_free_bytes{{{SERVICE}}}": "4e9x20"}, 10, 1),
    ("ThlVerifyDifferent", {f"thl_service_compared_different{{{TARGET}}}": "1x10"}, 5, 1),
    ("ThlRestarts", {f"thl_service_producer_restarts{{{SERVICE}}}": "1+1x40"}, 35, 1),
    # What is not known is ThlStateUnknown's alone.
    ("ThlProducerDown", {f"thl_service_producer_up{{{SERVICE}}}": NAN}, 10, 0),
    ("ThlStateUnknown", {f'thl_service_producer_state{{{SERVICE},state="UNKNOWN"}}': "1x20"}, 10, 1),
    ("ThlStateUnknown", {f'thl_service_producer_state{{{SERVICE},state="OFFLINE"}}': "1x20"}, 10, 0),
]


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load(RULES.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_every_rule_has_a_case_a_severity_and_a_remedy() -> None:
    found = rules()
    assert [rule["alert"] for rule in found] == list(CASES)
    assert {rule["labels"]["severity"] for rule in found} == {"critical", "warning"}
    for rule in found:
        assert set(rule["annotations"]) == {"summary", "remedy"}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_rule_is_made_of_declared_metrics_and_their_labels(rule: dict[str, Any]) -> None:
    declared = {one.name: one.labels for one in DECLARED}
    used = re.findall(r"(thl_\w+)(?:\{([^}]*)\})?", rule["expr"])
    assert used or "up{" in rule["expr"]
    labels = {"instance"}
    for name, selector in used:
        assert name in declared
        assert set(re.findall(r"(\w+)[!=~]+\"", selector)) <= set(declared[name])
        labels |= set(declared[name])
    for text in rule["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels


def promtool(*words: str) -> str:
    try:
        command = prometheus("promtool")
    except SandboxError as error:
        pytest.skip(f"no promtool can be had: {error.message}")
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_rules_are_valid() -> None:
    assert f"{len(CASES)} rules found" in promtool("check", "rules", str(RULES))
    promtool("check", "config", str(RULES.with_name("prometheus.yaml")))


@pytest.mark.long
def test_each_alert_fires_and_is_quiet(tmp_path: Path) -> None:
    cases = [*FURTHER]
    for alert, (firing, quiet, minute) in CASES.items():
        cases += [(alert, firing, minute, 1), (alert, quiet, minute, 0)]
    tests = [
        {
            "interval": "1m",
            "name": f"{number}: {alert} fires {count} times",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                    "eval_time": f"{minute}m",
                    "exp_samples": [{"labels": "{}", "value": count}],
                }
            ],
        }
        for number, (alert, series, minute, count) in enumerate(cases)
    ]
    checked(tests, tmp_path)


@pytest.mark.long
def test_summary_has_its_value_in_the_right_unit(tmp_path: Path) -> None:
    relay = {f"thl_relay_free_bytes{{{SERVICE}}}": "3e10x20", f"thl_relay_size_bytes{{{SERVICE}}}": "1e12x20"}
    (rule,) = (rule for rule in rules() if rule["alert"] == "ThlRelayDiskLow")
    expected = {
        "exp_labels": {"service": "shop", "severity": "critical"},
        "exp_annotations": {
            **rule["annotations"],
            "summary": "the disk of the relay of shop has 27.94GiB left",
        },
    }
    checked(
        [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in relay.items()],
                "alert_rule_test": [{"eval_time": "10m", "alertname": "ThlRelayDiskLow", "exp_alerts": [expected]}],
            }
        ],
        tmp_path,
    )


def checked(tests: list[dict[str, Any]], folder: Path) -> None:
    """Let promtool run tests of the rules."""
    file = folder / "alerts.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", str(file))
