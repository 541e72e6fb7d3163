"""The daemon as a systemd service: its unit, and its notifications to the service manager."""
