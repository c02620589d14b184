"""Family: what came after, what does it cost?"""

from ui import controls, shell
from ui.views import family, family_cost

ANATOMY, COST, RELATIVES, TOGETHER, CLAIMS, PAPER = (
    "Anatomy", "Cost", "Relatives", "Side by side", "Wrong claims", "Paper tables")

here = shell.open_page()
view = controls.view([ANATOMY, COST, RELATIVES, TOGETHER, CLAIMS, PAPER])
if view == ANATOMY:
    family.anatomy(here)
elif view == COST:
    family_cost.cost(here)
elif view == RELATIVES:
    family.relatives()
elif view == TOGETHER:
    family.side_by_side(here)
elif view == CLAIMS:
    family.claims(here)
else:
    family.paper()
shell.close_page(here)
