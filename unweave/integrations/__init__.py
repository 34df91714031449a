"""Unweave inside of other libraries, and their formats."""
