"""Leaders: one live actor per group that owns its progress and lends its streams."""
