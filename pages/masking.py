"""Masking: what goes in the gap?"""

from ui import controls, shell
from ui.views import masking, masking_head, masking_layers, masking_more, masking_neurons, masking_swap

here = shell.open_page()
masking.need_head(here)
match controls.view(masking.VIEWS):
    case "The head":
        masking_head.draw(here)
    case "Layer by layer":
        masking_layers.layer_by_layer(here)
    case "Neurons":
        masking_neurons.draw(here)
    case "Before and after":
        masking_more.before_and_after(here)
    case "Other sentence":
        masking_more.other_sentence(here)
    case "Swap vectors":
        masking_swap.swap(here)
    case "80/10/10":
        masking_more.simulator(here)
    case "Pseudo-perplexity":
        masking_more.pseudo_perplexity(here)
    case _:
        masking.fill_in(here)
shell.close_page(here)
