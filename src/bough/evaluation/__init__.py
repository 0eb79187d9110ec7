"""What policies would have earned, from a log of another's decisions."""
