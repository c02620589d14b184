"""Masking: what goes in the gap?"""

from ui import controls, shell
from ui.views import masking, masking_head, masking_layers, masking_more, masking_neurons, masking_swap

here = shell.open_page()
masking.need_head(here)
view = controls.view(["Fill the gap", "The head", "Layer by layer", "Neurons", "Before and after", "Two sentences",
                      "Swap vectors", "80/10/10", "Pseudo-perplexity"])
if view == "Fill the gap":
    masking.fill_in(here)
elif view == "The head":
    masking_head.draw(here)
elif view == "Layer by layer":
    masking_layers.layer_by_layer(here)
elif view == "Neurons":
    masking_neurons.draw(here)
elif view == "Before and after":
    masking_more.before_and_after(here)
elif view == "Two sentences":
    masking_more.two_sentences(here)
elif view == "Swap vectors":
    masking_swap.swap(here)
elif view == "80/10/10":
    masking_more.simulator(here)
else:
    masking_more.pseudo_perplexity(here)
shell.close_page(here)
