"""What is measured of the daemon at work."""
