"""The only importable code that imports streamlit; pages are built from it."""
