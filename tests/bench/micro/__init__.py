"""The cost of one call of each hot function: a small benchmark per function, all in a minute.

`python -m tests.bench.micro` prints nanoseconds a unit (a row, an event, a value …), with `--instructions` also the
instructions that callgrind counted, which a busy machine does not change. `--save` keeps the figures as a line of
`series.jsonl`; `--compare` prints them as ratios to the last line. `pytest tests/bench/micro` runs each once.
"""
