"""Writers of views, one for each medium: terminal, Markdown, JSON, CSV."""
