"""Changes by operators: planned, applied, taken back."""
