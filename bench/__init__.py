"""Side-by-side measurements: each is a command that prints a ratio to a peer in the same run."""
