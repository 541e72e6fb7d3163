"""What each kind of operation plans and begins."""
