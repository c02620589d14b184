"""The least a Streamlit page can be: one live text input, and its text given back."""

import html
import json

import streamlit as st

st.set_page_config(layout="wide")
text = st.text_input("Sentence", live="0ms", key="text")
shown = json.dumps({"text": text, "status": ""})
st.html(f'<p data-ready data-text="{html.escape(text)}">{html.escape(shown, quote=False)}</p>')
