"""A disposable MariaDB server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connector.sandbox.fetching.mariadb_programs import mariadb_folder
from connector.sandbox.fetching.versions import MARIADB_VERSION
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MARIADB_ADMIN, MARIADB_SETTINGS


class MariaDbServer(Mysqld):
    """MariaDB with whole row images and an administrator with a folder's own password.

    Args:
        folder, port: see `Mysqld`.
        settings: over those of `settings.MARIADB_SETTINGS`.
        version: a pinned one.
        die_with_parent: see `Program`.
    """

    name = "mariadb"
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
        """By the script that comes with it."""
        script = self._programs / "scripts" / "mariadb-install-db"
        command = [str(script), f"--defaults-file={self.configuration}", f"--basedir={self._programs}"]
        command += [f"--datadir={self.data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
        given = (  # by UPDATE: it runs without accounts, and makes the administrator for several hosts
            "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'mysql_native_password', "
            f"'$.authentication_string', PASSWORD('{self.password}')) WHERE User = '{self.user}';\n"
        )
        with self.statements(given) as file:
            self.make_data([*command, f"--extra-file={file}"])

    def places(self) -> Mapping[str, object]:
        """In the folder it was unpacked in."""
        share = self._programs / "share"
        return {"basedir": self._programs, "lc_messages_dir": share, "character_sets_dir": share / "charsets"}
