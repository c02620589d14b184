"""Attention: who looks at whom?"""

from ui import controls, shell
from ui.views import (
    attention,
    attention_act,
    attention_attribution,
    attention_bertviz,
    attention_export,
    attention_flow,
    attention_roles,
    attention_steps,
)

here = read = shell.open_page()
match controls.view(attention.VIEWS):
    case "Through the layers":
        attention_flow.draw(here)
    case "Step by step":
        attention_steps.draw(here)
    case "Roles":
        attention_roles.draw(here)
    case "Act":
        attention_act.draw(here)
    case "Attribution":
        read = attention_attribution.draw(here)
    case "bertviz":
        attention_bertviz.draw(here)
    case "Export":
        attention_export.draw(here)
    case _:
        attention.all_heads(here)
shell.close_page(here, shown=shell.status_line(read))
