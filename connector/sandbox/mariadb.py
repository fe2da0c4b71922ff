"""A disposable MariaDB server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connector.fetching.mariadb_programs import mariadb_folder
from connector.fetching.versions import MARIADB_VERSION
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MARIADB_ADMIN, MARIADB_SETTINGS


class MariaDbServer(Mysqld):
    """MariaDB with full row images; the administrator has a random password per data folder.

    Args:
        folder, port: folder and port of the server; see `Mysqld`.
        settings: server settings that override `settings.MARIADB_SETTINGS`.
        version: a pinned version.
        die_with_parent: the server ends with this process; see `Program`.
    """

    name = "mariadb"
    client_options = ("skip-ssl",)  # which the server has off, and the client would insist on
    user = MARIADB_ADMIN.user
    group = "mariadbd"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        version: str = MARIADB_VERSION,
        die_with_parent: bool = False,
    ) -> None:
        self._programs = mariadb_folder(version)
        super().__init__(
            folder,
            port,
            {**MARIADB_SETTINGS, **(settings or {})},
            server=[str(self._programs / "bin" / "mariadbd")],
            client=[str(self._programs / "bin" / "mariadb")],
            die_with_parent=die_with_parent,
        )

    def initialise(self) -> None:
        """Create the data folder with MariaDB's own script."""
        script = self._programs / "scripts" / "mariadb-install-db"
        command = [str(script), f"--defaults-file={self.configuration}", f"--basedir={self._programs}"]
        command += [f"--datadir={self.data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        # To the server that the script runs; else it logs, and syncs, every row that the script writes.
        command += ["--skip-log-bin", "--innodb-flush-log-at-trx-commit=2"]
        given = (  # by UPDATE: the script runs without accounts, and creates the administrator for several hosts
            "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'mysql_native_password', "
            f"'$.authentication_string', PASSWORD('{self.password}')) WHERE User = '{self.user}';\n"
        )
        with self.statements(given) as file:
            self.make_data([*command, f"--extra-file={file}"])

    def folders(self) -> Mapping[str, object]:
        """Return the options for the folder of the unpacked programs."""
        share = self._programs / "share"
        return {"basedir": self._programs, "lc_messages_dir": share, "character_sets_dir": share / "charsets"}
