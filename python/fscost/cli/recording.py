"""`fscost recording info|verify|export`."""

import typer

app = typer.Typer(help="Look into a recording.", no_args_is_help=True)
