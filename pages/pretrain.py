"""Pre-train: how does it learn this?"""

from ui import shell, training
from ui.views import pretrain

here = shell.open_page(needs_model=False)
with training.above():
    spec = pretrain.settings()
pretrain.page(spec)
shell.close_page(here, shown=pretrain.status_line(spec))
