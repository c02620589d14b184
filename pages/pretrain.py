"""Pre-train: how does it learn this?"""

from ui import shell
from ui.views import pretrain

here = shell.open_page(needs_model=False)
spec = pretrain.settings()
pretrain.page(spec)
shell.close_page(here, shown=pretrain.status_line(spec))
