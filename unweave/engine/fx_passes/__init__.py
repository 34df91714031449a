"""Passes that rewrite the recorded training step before it is compiled."""
