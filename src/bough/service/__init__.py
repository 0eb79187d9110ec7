"""The decision service: `bough serve`. The log is the truth, and every process tails it."""
