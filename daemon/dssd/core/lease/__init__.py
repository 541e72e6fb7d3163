"""The lease protocol: versioned stream sets in place of single grants (seed 001, DESIGN §6)."""
