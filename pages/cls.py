"""[CLS]: how does one vector judge a sentence?"""

from ui import shell
from ui.views import cls_answer, cls_change, cls_head, cls_layers, cls_nsp, cls_reader, task_models

ANSWER, LAYERS, CHANGE, HEAD, NEXT = "Answer", "Layers", "Change a word", "The head", "Next sentence"

here = typed = shell.open_page()
view, model_place = task_models.open_view([ANSWER, LAYERS, CHANGE, HEAD, NEXT])
with model_place:
    if view == NEXT:
        here = task_models.with_head(here, "nsp", "twin-bert", "next_model")
    else:
        here = task_models.with_head(here, "classification", "twin-bert-sst2", "classifier")
if view != NEXT:
    here = task_models.or_example(here, task_models.examples("cls")["changes"][0][0])
cls_reader.say_name(here)
if view == ANSWER:
    cls_answer.draw(here)
elif view == LAYERS:
    cls_layers.draw(here)
elif view == CHANGE:
    cls_change.draw(here)
elif view == HEAD:
    cls_head.draw(here, "classification")
else:
    here = cls_nsp.draw(here)
task_models.attention_buttons(here)
shell.close_page(typed, shown=shell.status_line(here), read=(here,))
