"""Code: is this really BERT?"""

from ui import controls, shell
from ui.views import code

STAGES, WALK, SCRIPT = "Stages", "Walk", "Script"

here = shell.open_page()
view = controls.view([STAGES, WALK, SCRIPT])
if view == STAGES:
    code.stages(here)
elif view == WALK:
    code.steps(here)
else:
    code.copy_script(here)
shell.close_page(here)
