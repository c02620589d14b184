"""One way, both ways: what does GPT not see?"""

from ui import controls, shell
from ui.views import compare as view

here = shell.open_page()
which = controls.view(list(view.VIEWS))
view.draw(here, which)
shell.close_page(here, shown=view.status(here, which))
view.after(here, which)
