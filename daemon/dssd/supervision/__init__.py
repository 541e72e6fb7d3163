"""What goes on after a mistake, and what ends the daemon."""
