"""The command line: parses and calls."""
