"""Reads the progress of a service for `thl status` and `thl wait`. Starts, fences and claims nothing.

- `report`: the numbers, under Tungsten's names where it has them, and the problems found in them.
- `collect`: reads all numbers, Kafka's included.
- `loads`: the newest load of each table, and why loads pause, for `thl load --status`.
- `source`: reads the source's numbers.
- `trace`: the times of one event, for `thl trace`.
- `trepctl`: the numbers under the names of Tungsten's `trepctl status`.
- `waiting`: waits until target or log have an event or a heartbeat.
- `heartbeat`: reads a heartbeat from the target.
- `catch_up`: estimates the time until a target has caught up.
- `lag_monitor`: the lag as metrics during `thl apply`.
"""
