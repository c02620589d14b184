"""Masking: what goes in the gap?"""

from ui import chips, controls, shell

here = shell.open_page("masking")
view = controls.view(["Fill in", "Compare two", "80/10/10"])
masked = chips.tokens(here.encoding, key="mask", select="many")
shell.close_page(here)
