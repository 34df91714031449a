"""The one-file HTML pages."""
