"""The log as its producer writes it: what it proves before going online, and how its position moves.

- `online`: going online, as decisions without I/O.
- `tail`: the partitions' ends, compared with the position.
- `trapped`: whether the source still has what the log took from it.
- `progress`: how the position moves while the producer publishes; compiled.
- `fragment`: an encoded fragment with what must be remembered with it; compiled.
"""
