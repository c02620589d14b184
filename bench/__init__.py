"""Side-by-side measurements: each is a command that prints a ratio to a peer in the same run."""

import bert_core  # noqa: F401 - its OpenMP settings hold for both sides, as it comes before torch
