"""What operators ask of groups: why a record does not come, what is stuck, whether sums add up."""
