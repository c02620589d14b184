"""Fine-tune: from language to a task."""

from ui import shell, training
from ui.views import finetune

here = shell.open_page(needs_model=False)
with training.above():
    spec, files = finetune.settings()
finetune.page(spec, files)
shell.close_page(here, shown=finetune.status_line(spec))
