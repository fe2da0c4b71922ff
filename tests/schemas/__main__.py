"""`python -m tests.schemas`: real schemas from a MySQL through a log to a MySQL, or to a MariaDB; then all is compared.

Each schema is there twice: one database is loaded, the other one is created while the log is written, so that the
target executes the schema's own statements. Both get the schema's own rows; then rows and DDL made for its tables. The
applier is killed now and then. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import click

from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.schemas.packages import SCHEMAS, Schema, scripts
from tests.schemas.rows import Writer
from tests.support.apply_process import THL, Process, target_file
from tests.support.equal_databases import count, differences, query
from tests.support.mysql import connect
from tests.support.producing import Bench, until
from tests.support.servers.environment import SqlServer

BATCHES = {"THL_APPLY__BATCH_MESSAGES": "500"}
SETTINGS = {**MYSQL_FAST, "log_bin_trust_function_creators": "ON", "local_infile": "ON"}
# Older servers took these schemas so: dates that are none, keys to what is not unique.
SESSION = "sql_mode = '', foreign_key_checks = 0, restrict_fk_on_non_standard_key = OFF, time_zone = '+00:00'"
PATIENCE = 3600.0


@click.command()
@click.option("--only", multiple=True, type=click.Choice([one.name for one in SCHEMAS]), help="These schemas alone.")
@click.option("--to", type=click.Choice(["mysql", "mariadb"]), default="mysql", show_default=True)
@click.option("--definitions", type=click.Choice(["source", "plain"]), default="source", show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(*, only: Sequence[str], to: str, definitions: str, seed: int) -> None:
    """Run and compare."""
    schemas = [one for one in SCHEMAS if not only or one.name in only]
    texts = scripts()
    with tempfile.TemporaryDirectory(prefix="thl-schemas-") as folder, ExitStack() as servers:
        work = Path(folder)
        source = servers.enter_context(MySqlServer(work / "source", settings=SETTINGS, die_with_parent=True))
        kafka = servers.enter_context(KafkaBroker(work / "kafka", die_with_parent=True))
        if to == "mariadb":
            target: SqlServer = MariaDbServer(work / "target", settings=MYSQL_FAST, die_with_parent=True)
        else:
            target = MySqlServer(work / "target", settings={**SETTINGS, "server_id": "3"}, die_with_parent=True)
        servers.enter_context(target)  # type: ignore[arg-type]  # both are contexts
        wrong = Run(source, target, kafka, work, definitions=definitions, seed=seed).run(schemas, texts)
    click.echo("\n".join(wrong[:40]))
    sys.exit(1 if wrong else 0)


class Run:
    """Schemas on their way through one log.

    Args:
        source, target, kafka: the servers.
        folder: for the files of producer and applier.
        definitions: `target.definitions`.
        seed: of rows and DDL.
    """

    def __init__(
        self, source: SqlServer, target: SqlServer, kafka: KafkaBroker, folder: Path, *, definitions: str, seed: int
    ) -> None:
        self._source = source
        self._target = target
        self._kafka = kafka
        self._folder = folder
        self._definitions = definitions
        self._seed = seed
        self._refused = 0
        self._process: Process | None = None

    def run(self, schemas: Sequence[Schema], texts: dict[str, str]) -> list[str]:
        """Load, create, write, alter; return the differences."""
        bench = Bench(self._source, self._kafka, self._folder)
        databases = [f"{one.name}_{how}" for one in schemas for how in ("loaded", "live")] + [bench.service]
        listed = ", ".join(f'"{name}"' for name in databases)
        bench.settings["THL_SOURCE__FILTERS__DO"] = f"[{listed}]"
        server = self._target
        url = f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"
        file = target_file(self._folder, bench.service, self._kafka, url=url, definitions=self._definitions)
        bench.sql(f"CREATE DATABASE {bench.service}")
        for one in schemas:
            self._install(one, f"{one.name}_loaded", texts)
            self._make_loadable(f"{one.name}_loaded")
        with bench.start() as producing:
            until(lambda: " loaded service=" in producing.text or producing.process.poll() is not None, PATIENCE)
            assert producing.process.poll() is None, producing.text[-5000:]
            self._start(file)
            try:
                for number, one in enumerate(schemas):
                    self._install(one, f"{one.name}_live", texts)
                    for how in ("loaded", "live"):
                        with connect(self._source) as connection:
                            writer = Writer(connection, f"{one.name}_{how}", self._seed)
                            writer.change()
                            writer.alter()
                            writer.change()
                            writer.check()
                            self._refused += writer.refused
                    if number % 4 == 3:
                        self._kill(file)
                bench.sql(f"CREATE TABLE {bench.service}.last_one (id INT PRIMARY KEY)")
                until(lambda: self._runs() and self._is_there(bench.service), PATIENCE)
            finally:
                assert self._process
                self._process.popen.terminate()
                self._process.wait()
                self._process.end()
            assert producing.stop() == 0, producing.text[-5000:]
        return self._compare(databases[:-1])

    def _install(self, schema: Schema, database: str, texts: dict[str, str]) -> None:
        self._source.run_sql(f"CREATE DATABASE {database} CHARACTER SET {schema.charset}")
        self._source.run_sql(f"SET SESSION {SESSION};\n{texts[schema.name]}", database=database)

    def _make_loadable(self, database: str) -> None:
        """As `thl check` says: a load refuses tables without transactions. The log has their changes all the same."""
        where = f"table_schema = '{database}' AND engine <> 'InnoDB' AND table_type = 'BASE TABLE'"
        for (name,) in query(self._source, f"SELECT table_name FROM information_schema.tables WHERE {where}"):
            self._source.run_sql(f"SET SESSION {SESSION};\nALTER TABLE `{name}` ENGINE = InnoDB", database=database)

    def _start(self, file: Path) -> None:
        self._process = Process([THL, "apply", "--config", str(file)], self._folder, **BATCHES)

    def _kill(self, file: Path) -> None:
        """Kill the applier once it has come further."""
        assert self._process
        position = "SELECT max(seqno) FROM thl.thl_position"
        until(lambda: self._runs() and bool(query(self._target, "SHOW DATABASES LIKE 'thl'")))
        ((before,),) = query(self._target, position)
        until(lambda: self._runs() and query(self._target, position)[0][0] != before)
        self._process.popen.kill()
        self._process.end()
        self._start(file)

    def _runs(self) -> bool:
        assert self._process
        assert self._process.popen.poll() is None, self._process.log.read_text()[-6000:]
        return True

    def _is_there(self, database: str) -> bool:
        where = f"table_schema = '{database}' AND table_name = 'last_one'"
        return bool(query(self._target, f"SELECT 1 FROM information_schema.tables WHERE {where}"))

    def _compare(self, databases: Sequence[str]) -> list[str]:
        wrong: list[str] = []
        counted: Counter[str] = Counter()
        of_source = self._definitions == "source" and isinstance(self._target, MySqlServer)
        for database in databases:
            found = differences(self._source, self._target, database, definitions=of_source)
            here = count(self._source, database)
            counted += here
            click.echo(f"{database:30} {here['tables']:4} tables {here['rows']:7} rows {len(found):3} differences")
            wrong += found
        refused = f"{self._refused} statements refused by the source's own triggers"
        click.echo(f"{len(databases)} databases, {dict(counted)}, {refused}, {len(wrong)} differences")
        return wrong


if __name__ == "__main__":
    main()
