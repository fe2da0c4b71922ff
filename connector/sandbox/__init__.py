"""Disposable real servers on loopback, without docker and without root: for tests, the demo and a first try.

    server                            the shape of every server, a Protocol
    mysql, mariadb, postgres, kafka   one server a file; `mysqld` has what MySQL and MariaDB share
    program, process                  one running program, and waiting until it answers
    ports, settings                   where servers listen, how they are set up
    stack, state                      several servers together, remembered across processes
    first_steps                       the configuration and the commands that `thl sandbox up` leaves
    fetching/                         what servers consist of, fetched once into a cache

A server runs in a session of its own, listens on 127.0.0.1 only, and keeps its port and data over a kill and a new
start. Linux only: the identity of a process is read from /proc.
"""
