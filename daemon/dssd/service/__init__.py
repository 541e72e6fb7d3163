"""The daemon as a service of systemd: its unit, and what it tells its manager."""
