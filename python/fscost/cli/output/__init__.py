"""Output of single commands that has no room of its own yet; what runs show is in `fscost.view` and `fscost.report`."""
