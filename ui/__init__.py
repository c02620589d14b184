"""The only importable code that imports streamlit; pages are built from it."""

from bert_core.threads import sleep_at_once

sleep_at_once()  # before anything here imports torch
