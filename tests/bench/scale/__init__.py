"""A capacity model beyond one machine: cores per part, the first limit, and the latency of a load.

`python -m tests.bench.scale` prints it. Costs are measured (`costs.json`, or newer results of `tests.bench`); what is
computed from them is a model: nothing here was run on more than one machine.
"""
