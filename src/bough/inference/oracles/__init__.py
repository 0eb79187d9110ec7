"""The same posteriors by short and obvious means; what every test compares the engines with."""
