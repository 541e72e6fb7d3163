"""Questions of operators about groups: why a record is not delivered, what is stuck, whether counts
add up."""
