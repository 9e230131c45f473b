"""What a person is shown of a run, as data: numbers chosen, sorted and put into words; nothing
printed."""
