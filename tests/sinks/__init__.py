"""Others' sinks, fed by `spark_apps/rows.py`: `make sinks`. They are fetched by maven and start a JVM or two each."""
