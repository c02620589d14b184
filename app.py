"""Both Ways: the server once, when it starts; then the script that every session runs."""

import streamlit as st

if __name__ == "__main__":  # a session's run
    from ui import rooms, shell
    from ui.turns import TURNS

    st.set_page_config(page_icon="assets/icon.svg", layout="wide", initial_sidebar_state=264)
    with TURNS.one(follows=rooms.following() is not None):
        page = shell.navigation()
        shell.frame(page)
        shell.run(page)
else:  # `streamlit run app.py` finds `app` by its constructor and imports it
    from ui.server import Start

    start = Start()
    app = st.App(__file__, routes=start.routes, lifespan=start.lifespan, middleware=start.middleware)
