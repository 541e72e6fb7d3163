"""What of its streams a session gives to its client, when, and how often."""
