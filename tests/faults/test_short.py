"""A short `make faults`: every process and server is killed once under load, and the target equals the source.

The rig of each target serves all of its kills, so that most of the time goes into dying and coming back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import killing
from tests.faults.rig import rig

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.timeout(1200)]


@pytest.mark.long
def test_mysql_to_sqlite_is_equal_after_any_kill(tmp_path: Path) -> None:
    with rig(tmp_path, "sqlite") as made:
        made.start()
        driver = killing.arm(made, "target.before_commit", 3)
        killing.crash(made, "produce.before_commit:3", "produce.after_epoch_commit", "produce.mid_event_after_commit:2")
        killing.crashed(made, driver, "target.before_commit")
        driver = killing.arm(made, "apply.after_commit", 2)
        killing.server(made, made.kafka, "broker")
        killing.crashed(made, driver, "apply.after_commit")
        killing.again(made, "apply")
        killing.server(made, made.mysql, "MySQL")
        made.progress()
        killing.jvm(made)
        made.progress()
        made.finish()
        assert made.kills.total() == 8


def test_mysql_to_postgres_is_equal_after_any_kill(tmp_path: Path) -> None:
    with rig(tmp_path, "postgres") as made:
        assert made.postgres
        made.start()
        driver = killing.arm(made, "target.mid_stage", 5)
        killing.crash(made, "produce.after_commit:3", "produce.mid_event_before_commit:2")
        killing.crashed(made, driver, "target.mid_stage")
        driver = killing.arm(made, "apply.after_commit", 3)
        killing.server(made, made.kafka, "broker")
        killing.crashed(made, driver, "apply.after_commit")
        killing.again(made, "apply")
        killing.server(made, made.mysql, "MySQL")
        made.progress()
        killing.server(made, made.postgres, "PostgreSQL")
        made.progress()
        killing.backend(made)
        made.progress()
        killing.jvm(made)
        made.progress()
        made.finish()
        assert made.kills.total() == 9
