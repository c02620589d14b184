"""The only importable code that imports streamlit; pages are built from it."""

import os

from bert_core.threads import sleep_at_once

# before anything here imports torch
sleep_at_once()
# oneDNN keeps a compiled product for each length of text and size of matrix, 1,024 of them unless told otherwise:
# 1 MB for each length that was ever typed
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")
