"""Meaning: same word, other meaning?"""

from ui import controls, shell
from ui.views import meaning as view

LAYERS, MAP, NEIGHBOURS, SENTENCES = "By layer", "Map", "Neighbours", "Sentences"

here = shell.open_page(says_cut=False)
read = view.read_alone(here)
chosen = controls.view([LAYERS, MAP, NEIGHBOURS, SENTENCES])
if chosen == LAYERS:
    view.draw_layers(here)
elif chosen == MAP:
    view.draw_map(here)
elif chosen == NEIGHBOURS:
    view.draw_neighbours(here)
else:
    view.draw_sentences(here)
shell.close_page(here, shown=shell.status_line(*read), read=read)
