"""What is observed: rows, sums over them, and logs of any kind."""
