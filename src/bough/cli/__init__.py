"""The command `bough`."""
