"""Both Ways: page config, the shared frame, and the page that was asked for."""

import streamlit as st

from ui import shell

st.set_page_config(page_title="Both Ways", page_icon="assets/icon.svg", layout="wide")
page = shell.navigation()
shell.frame(page)
page.run()
