"""The tree of actions: topology, names, and how it is built and kept."""
