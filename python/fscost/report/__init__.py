"""What is shown, written for one medium each: terminal, Markdown, JSON, CSV."""
