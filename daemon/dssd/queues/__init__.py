"""The queues of groups in the log: who appends to them, and what their entries are made of."""
