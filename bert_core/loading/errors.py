"""The one error of loading."""


class LoadError(ValueError):
    """A model can't be loaded; the message is one line for the user."""
