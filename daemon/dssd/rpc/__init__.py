"""The wire: servicers that decode, call and encode, and nothing else."""
