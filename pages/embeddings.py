"""Embeddings: how does a token become a vector?"""

from ui import controls, shell
from ui.views import embeddings

here = shell.open_page()
view = controls.view(["The sum", "Switch off and shuffle", "Positions", "Neighbours"])
if view == "The sum":
    embeddings.strips(here)
elif view == "Switch off and shuffle":
    embeddings.consequences(here)
elif view == "Positions":
    embeddings.positions(here)
else:
    embeddings.neighbours(here)
shell.close_page(here)
