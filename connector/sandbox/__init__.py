"""Disposable real servers on loopback, without docker and without root: for tests, the demo and trials.

- `server`: what every server is, and its contract.
- `mysql`: a MySQL.
- `mariadb`: a MariaDB.
- `mysqld`: what MySQL and MariaDB share.
- `postgres`: a PostgreSQL.
- `kafka`: a Kafka broker.
- `program`: one running program, and waiting until it answers.
- `process`: processes, identified by /proc.
- `ports`: free ports.
- `settings`: the servers' settings.
- `stack`: several servers together.
- `state`: the running servers, recorded for later processes.
- `first_steps`: the configuration and the next commands, written by `thl sandbox up`.

`connector/fetching` fetches the servers' programs. A server runs in its own session, listens on 127.0.0.1 only, and
keeps its port and data when it is killed and started again. Linux only: /proc identifies a process.
"""
