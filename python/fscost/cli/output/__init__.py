"""Output that only one command has.

The output of runs is in `fscost.view` and `fscost.report`.
"""
