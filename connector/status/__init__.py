"""How far a service is: what `thl status` shows. Reads only; starts, fences and claims nothing.

- `report`: the numbers, under Tungsten's names where it has them, and what is wrong with them.
- `source`: from MySQL. `target`: from the target. `collect`: both, and what Kafka has, together.
- `trepctl`: the numbers as Tungsten's `trepctl status` names them. `waiting`: until the target has an event.
- `catch_up`: when a target that is behind will have caught up. `lookout`: the same as metrics, while `thl apply` runs.
"""
