"""What goes wrong with the producer and the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from connector.errors import SandboxError
from connector.sandbox.mysql import MySqlServer
from tests.integration.alerts.fleet import Fleet
from tests.integration.alerts.trouble import Troubles
from tests.integration.producer.test_load_pauses import SMALL, Pair
from tests.support.mysql import connect
from tests.support.producing import until

TROUBLES = Troubles()
LAGS: Final = ("ThlProducerLag", "ThlProducerLagLarge", "ThlProducerStuck")  # of a producer that does not go on
# Once it goes on, the target is as old as the log was, until the applier has what comes: less than a minute, as a rule.
LATE: Final = ("ThlApplierLag", "ThlApplierLagLarge")
# ThlRestarts may fire where a trouble needs a producer with other settings: two starts, and two of the trouble before.


@TROUBLES.fires("ThlProducerDown")
def the_producer_has_ended(fleet: Fleet) -> Iterator[None]:
    fleet.producer.stop()
    yield
    fleet.produce()


@TROUBLES.fires(*LAGS, besides=LATE)
def the_producer_does_nothing_while_the_source_goes_on(fleet: Fleet) -> Iterator[None]:
    with fleet.frozen_producer(), fleet.busy_source():
        yield


@TROUBLES.fires("ThlPublicationHeld", besides=(*LAGS, *LATE, "ThlRestarts"))
def publication_waits_for_a_replica_that_stands(fleet: Fleet) -> Iterator[None]:
    replica = MySqlServer(fleet.folder / "replica", settings={**SMALL, "server_id": "2"}, die_with_parent=True)
    with replica:
        pair = Pair(fleet.mysql, replica)  # type: ignore[arg-type]
        pair.follow()
        address = f"mysql://{replica.user}:{replica.password}@{replica.host}:{replica.port}"
        fleet.produce(THL_PUBLISH__WAIT_FOR=f'["{address}"]')
        fleet.insert()
        until(fleet.is_well)
        pair.stop()
        fleet.insert()
        yield
        pair.follow()
        until(lambda: not fleet.firing())
        fleet.produce()


@TROUBLES.fires("ThlPurgeSoon")
def the_source_may_purge_what_the_producer_needs(fleet: Fleet) -> Iterator[None]:
    before = fleet.sql("SELECT @@GLOBAL.binlog_expire_logs_seconds").split()[-1]
    with fleet.frozen_producer():
        fleet.sql("SET GLOBAL binlog_expire_logs_seconds = 600", "FLUSH BINARY LOGS")
        try:
            yield
        finally:
            fleet.sql(f"SET GLOBAL binlog_expire_logs_seconds = {before}")


@TROUBLES.fires("ThlPreparedXaOld")
def an_xa_transaction_is_not_decided(fleet: Fleet) -> Iterator[None]:
    name = f"'{fleet.service}'"
    with closing(connect(fleet.mysql)) as coordinator, coordinator.cursor() as cursor:
        cursor.execute(f"XA START {name}")
        cursor.execute(f"INSERT INTO {fleet.table} (v) VALUES ('prepared')")
        cursor.execute(f"XA END {name}")
        cursor.execute(f"XA PREPARE {name}")
        try:
            yield
        finally:
            cursor.execute(f"XA COMMIT {name}")


@TROUBLES.fires("ThlLoadPaused")
def a_load_waits_for_a_source_whose_own_replication_stands(fleet: Fleet) -> Iterator[None]:
    fleet.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1")
    try:
        asked = fleet.thl("load", fleet.table)
        assert asked.returncode == 0, asked.stderr
        yield
    finally:
        fleet.sql("RESET REPLICA ALL")


@TROUBLES.fires("ThlSemiSyncOff", besides=("ThlRestarts",))
def commits_wait_no_longer(fleet: Fleet) -> Iterator[None]:
    """Somebody switches it off. The `thl serve` that sees it knows of `source.semi_sync`."""
    plugin = "rpl_semi_sync_source"
    fleet.sql(f"INSTALL PLUGIN {plugin} SONAME 'semisync_source.so'")
    fleet.sql(f"SET GLOBAL {plugin}_wait_point = 'AFTER_SYNC'", f"SET GLOBAL {plugin}_timeout = 1000")
    fleet.sql(f"SET GLOBAL {plugin}_enabled = ON")
    try:
        fleet.produce(THL_SOURCE__SEMI_SYNC="true")
        fleet.insert()
        with fleet.another_server(THL_SOURCE__SEMI_SYNC="true"):
            until(lambda: bool(fleet.alarms.query("thl_service_semi_sync_on == 1")))
            fleet.sql(f"SET GLOBAL {plugin}_enabled = OFF")
            yield
            fleet.sql(f"SET GLOBAL {plugin}_enabled = ON")
            until(lambda: not fleet.firing())
    finally:
        fleet.sql(f"SET GLOBAL {plugin}_enabled = OFF")
        fleet.produce()
        until(lambda: _uninstalled(fleet, plugin))


def _uninstalled(fleet: Fleet, plugin: str) -> bool:
    try:
        fleet.sql(f"UNINSTALL PLUGIN {plugin}")
    except SandboxError:  # the session of the producer before is not seen to have ended
        return False
    return True


@TROUBLES.fires("ThlRestarts")
def a_producer_is_started_again_and_again(fleet: Fleet) -> Iterator[None]:
    """The last of those that start one, because the alert looks back."""
    for _ in range(5):
        fleet.produce()
    yield
