"""A disposable MySQL server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from connector.fetching.mysql_programs import mysql_programs
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MYSQL_ADMIN, MYSQL_SETTINGS


class MySqlServer(Mysqld):
    """MySQL with full row images and GTIDs; the administrator has a random password per data folder.

    Args:
        folder, port: folder and port of the server; see `Mysqld`.
        settings: server settings that override `settings.MYSQL_SETTINGS`, e.g. `MYSQL_FAST`; may change between starts.
        die_with_parent: the server ends with this process; see `Program`.
    """

    name = "mysql"
    user = MYSQL_ADMIN.user
    # The server is reached over loopback: TLS would take each client 50 ms, and without it the public key is needed.
    client_options = ("get-server-public-key", "ssl-mode=DISABLED")
    made = "mysql.ibd"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        die_with_parent: bool = False,
    ) -> None:
        programs = mysql_programs()
        super().__init__(
            folder,
            port,
            {**MYSQL_SETTINGS, **(settings or {})},
            server=programs.command("mysqld"),
            client=programs.command("mysql"),
            die_with_parent=die_with_parent,
        )

    @property
    def files(self) -> Path:
        """The folder for LOAD DATA and SELECT … INTO OUTFILE."""
        return self.folder / "files"

    def client(self, program: str) -> list[str]:
        """Return the command of one of MySQL's programs that connects to this server as the administrator."""
        return self.connecting(mysql_programs().command(program))

    def create_user(self, user: str, password: str, privileges: Sequence[str] = ("ALL",)) -> None:
        """Create an account for any host, with global privileges."""
        account, secret = f"'{user}'@'%'", password.replace("\\", "\\\\").replace("'", "''")
        self.run_sql(
            f"CREATE USER {account} IDENTIFIED BY '{secret}'; GRANT {', '.join(privileges)} ON *.* TO {account}"
        )

    def initialise(self) -> None:
        """Create the data folder with mysqld itself."""
        unlogged = "SET sql_log_bin = 0;\n"  # not logged: a replica keeps its own password
        given = f"{unlogged}ALTER USER '{self.user}'@'localhost' IDENTIFIED BY '{self.password}';\n"
        with self.statements(given) as file:
            self.make_data([*self.server, "--initialize-insecure", f"--init-file={file}"])

    def folders(self) -> Mapping[str, object]:
        """Return the options for the server's program files, and for the one folder that LOAD DATA may access."""
        self.files.mkdir(parents=True, exist_ok=True)
        return {**mysql_programs().options, "secure_file_priv": self.files}
