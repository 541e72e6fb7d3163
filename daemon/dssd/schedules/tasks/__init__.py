"""What the daemon can do by the clock, one module a task; `registry` has the list."""
