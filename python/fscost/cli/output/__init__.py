"""A finished run, written for people and for programs."""
