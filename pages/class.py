"""Class: teach with it."""

from ui import controls, shell
from ui.views import class_lessons, class_paper, class_room

LESSONS, CHECKLIST, ROOM, PRESENT, PAPER = "Lessons", "Checklist", "Room", "Present", "Print and cite"

here = shell.open_page(needs_model=False)
class_room.open_first(ROOM)
view = controls.view([LESSONS, CHECKLIST, ROOM, PRESENT, PAPER])
if view == LESSONS:
    class_lessons.show_lessons(class_lessons.progress())
elif view == CHECKLIST:
    class_lessons.show_checklist(class_lessons.progress())
elif view == ROOM:
    class_room.show_room(here)
elif view == PRESENT:
    class_room.show_present(here)
else:
    class_paper.show()
shell.close_page(here)
