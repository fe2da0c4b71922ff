"""How far a service is: what `thl status` shows. Reads only; starts, fences and claims nothing.

- `report`: the numbers, under Tungsten's names where it has them, and what is wrong with them.
- `log`: from Kafka. `source`: from MySQL. `target`: from the target. `collect`: all of them together.
"""
