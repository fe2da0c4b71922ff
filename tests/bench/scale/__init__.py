"""Beyond one machine, on paper: which part needs how many cores, what limits first, what latency a load has.

`python -m tests.bench.scale` prints it. Costs are measured (`costs.json`, or newer results of `tests.bench`); what is
computed from them is a model: nothing here was run on more than one machine.
"""
