"""Tokens: what does BERT see instead of words?"""

from ui import controls, shell
from ui.views import tokens

here = shell.open_page()
view = controls.view(["Step by step", "Ids and segments", "Compare"])
if view == "Step by step":
    tokens.step_by_step(here)
elif view == "Ids and segments":
    tokens.ids_and_segments(here)
else:
    tokens.compare(here)
shell.close_page(here)
