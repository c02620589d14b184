"""Numbers to plotly figures, one file a page; colours in theme.py."""
