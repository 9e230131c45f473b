"""What is computed from a finished cell, on the machine that ran it: each module adds metrics and
facts to the result."""
