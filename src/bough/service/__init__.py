"""The decision service, `bough serve`: HTTP in front of an agent, and a log that loses nothing."""
