"""Attention: who looks at whom?"""

from ui import controls, shell
from ui.views import attention as view

here = shell.open_page("attention")
which = controls.view(view.VIEWS)
view.all_heads(here)
shell.close_page(here)
