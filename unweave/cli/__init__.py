"""The command line: parses and calls."""

from rich.console import Console

out_console = Console()
error_console = Console(stderr=True, soft_wrap=True, highlight=False)
