"""Disposable real servers on loopback: no docker, no root.

For tests, the demo and a newcomer's first try; nothing of the pipeline imports this. What is fetched, by the
ordinary clients of the machine, goes into one cache folder (`cache.py`), after which everything works offline.

    ports, cache, program, waiting        what every server needs
    java, maven, apt                      where programs come from
    mysql, mariadb, postgres, kafka       one server a file, all with the shape of `server.Server`
    registry                              a schema registry, of that shape too
    stack, state, commands                several together, remembered across processes
    compose, environment                  the same facts for the set in docker/compose.yaml

A server is started in a session of its own, listens on 127.0.0.1 only, has no secrets worth keeping, and keeps
its port and data over a kill and a new start. Linux only: process identity is read from /proc.
"""
