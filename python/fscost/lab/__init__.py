"""Places where cells run: each takes one cell and says what happened, or why it cannot."""
