"""Output of single commands that has no package yet.

The output of runs is in `fscost.view` and `fscost.report`.
"""
