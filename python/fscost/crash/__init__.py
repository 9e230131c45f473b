"""Power cuts: the states of a recorded disk that one could have left behind, and whether the file
system keeps its promises in each."""
