"""Tasks that the daemon runs by the clock, or because somebody asks."""
