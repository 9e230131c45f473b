"""Requests of `fscost compare` and `fscost.compare`: validated, resolved, and given a lab."""
