"""From a configuration to a run folder."""
