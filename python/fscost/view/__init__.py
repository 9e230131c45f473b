"""Views of a run as data: numbers selected, sorted and put into words. Nothing is printed."""
