"""Other architectures, run by transformers' Auto classes, as the same kind of model."""
