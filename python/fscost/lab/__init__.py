"""Labs, which run cells: each takes one cell and returns its outcome, or the reason why it cannot
run."""
