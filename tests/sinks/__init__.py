"""Foreign sinks fed by `spark_apps/rows.py`: `make sinks`. Maven fetches them; each starts one or two JVMs."""
