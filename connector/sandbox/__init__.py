"""Disposable real servers on loopback, without docker and without root: for tests, the demo and a first try.

    server                            the shape of every server, a Protocol
    mysql, mariadb, postgres, kafka   one server a file; `mysqld` has what MySQL and MariaDB share
    program, process, waiting         one running program
    ports, password, settings         where servers listen, who logs in, how they are set up
    stack, state                      several servers together, remembered across processes
    commands                          `thl sandbox`
    fetching/                         what servers consist of, fetched once into a cache

A server runs in a session of its own, listens on 127.0.0.1 only, and keeps its port and data over a kill and a new
start. Linux only: the identity of a process is read from /proc.
"""
