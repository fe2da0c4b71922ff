"""Realistic defects put into the code one by one: each must make a test fail. `python -m tests.mutants`."""
