"""One module a group of commands; each registers itself on the Typer app it is given."""
