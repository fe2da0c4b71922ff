"""`thl check`: whether everything that the configuration names is there and set up, each with its remedy.

- `result`: a check's state and remedy, as text and JSON; the exit code of several.
- `servers`: checks the source, Kafka and the target. Creates and claims nothing.
- `java`: checks the Java that Spark needs.
- `run`: all checks, side by side.
"""
