"""What each written byte of a recording was, why, and whose: a table, sums of it, and what can be said of it in words."""

from fscost.analyze.explain import Explanation, explain
from fscost.analyze.findings import findings
from fscost.analyze.groups import By, Group, groups, kinds, total_bytes, unknown_bytes

__all__ = ["By", "Explanation", "Group", "explain", "findings", "groups", "kinds", "total_bytes", "unknown_bytes"]
