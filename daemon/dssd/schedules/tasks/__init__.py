"""The tasks that the daemon can run by the clock, one module each; `registry` lists them."""
