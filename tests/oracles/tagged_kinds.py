"""Kinds of workload: the weights of their actions (tagged_actions.py, tagged_scenarios.py).

The module needs the standard library only, so that it runs in guests.
"""

OFTEN = {"create": 20, "change": 14, "append": 6, "remove": 8, "truncate": 4}
DURABLE = {"sync": 3, "fsync": 4, "fsync_folder": 2}
MIXED = {
    **OFTEN,
    **DURABLE,
    "rename": 5,
    "make_folder": 3,
    "renew": 3,
    "replace": 4,
    "orphan": 4,
    "temporary": 5,
    "nameless": 4,
    "link": 3,
    "symlink": 2,
    "xattr": 4,
    "direct": 5,
    "store": 4,
    "range": 6,
    "exchange": 2,
    "clone": 3,
    "close": 4,
    "churn": 2,
    "vast": 1,
    "fill_folder": 1,
    "rename_folder": 2,
}
KINDS = {
    "mixed": MIXED,
    "renames": {
        **OFTEN,
        **DURABLE,
        "make_folder": 4,
        "rename": 6,
        "rename_folder": 4,
        "write_below": 12,
        "swap_folders": 4,
        "remove_folder": 6,
        "replace": 3,
    },
    "replace": {
        **OFTEN,
        **DURABLE,
        "make_folder": 1,
        "save": 16,
        "temporary": 10,
        "orphan": 6,
        "close": 6,
        "replace": 6,
        "churn": 1,
    },
    "clones": {
        **OFTEN,
        **DURABLE,
        "shrink_and_clone": 3,
        "clone": 14,
        "range": 4,
        "direct": 4,
        "orphan": 3,
        "close": 3,
    },
    "threads": {**MIXED, "save": 8},
    "attributes": {
        **OFTEN,
        **DURABLE,
        "make_folder": 3,
        "attributes": 14,
        "xattr": 8,
        "fill_folder": 1,
        "link": 4,
        "rename": 4,
    },
}
"""Weights of the actions by kind."""
WORKERS = {"threads": 6}
"""Number of threads, if more than one."""
