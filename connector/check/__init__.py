"""`thl check`: checks that everything the configuration names is there and set up, each with its remedy.

- `checks`: checks source, grants, Kafka, target and Java, side by side. Creates and claims nothing.
- `result`: a check's state and remedy, as text and JSON; the exit code of several.
"""
