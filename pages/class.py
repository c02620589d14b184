"""Class: teach with it."""

from ui import controls, own_lesson, shell
from ui.views import class_lessons, class_own, class_paper, class_room

LESSONS, CHECKLIST, ROOM, PRESENT, PAPER = "Lessons", "Checklist", "Room", "Present", "Print and cite"

here = shell.open_page(needs_model=False)
class_room.open_first(ROOM)
view = controls.view([LESSONS, CHECKLIST, own_lesson.VIEW, ROOM, PRESENT, PAPER])
if view == LESSONS:
    class_lessons.show_lessons(class_lessons.progress())
elif view == CHECKLIST:
    class_lessons.show_checklist(class_lessons.progress())
elif view == own_lesson.VIEW:
    class_own.show()
elif view == ROOM:
    class_room.show_room(here)
elif view == PRESENT:
    class_room.show_present(here)
else:
    class_paper.show()
shell.close_page(here)
