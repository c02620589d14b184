"""Tasks: what else is one layer good for?"""

from ui import shell
from ui.views import task_models, tasks_answers, tasks_entities, tasks_sentences

ENTITIES, ANSWERS, PAIRS, ACCEPT = "Entities", "Answers", "Sentence pairs", "Acceptability"

here = shell.open_page("tasks")
view, model_place = task_models.open_view([ENTITIES, ANSWERS, PAIRS, ACCEPT])
with model_place:
    if view == ENTITIES:
        here = task_models.with_head(here, "token_classification", "twin-bert-ner", "ner_model")
    elif view == ANSWERS:
        here = task_models.with_head(here, "question_answering", "twin-bert-squad", "answer_model")
    elif view == ACCEPT:
        here = task_models.with_head(here, "classification", "twin-bert-cola", "accept_model")
if view == ENTITIES:
    here = tasks_entities.draw(here)
elif view == ANSWERS:
    here = tasks_answers.draw(here)
elif view == PAIRS:
    here = tasks_sentences.draw_pair(here)
else:
    tasks_sentences.draw_acceptability(here)
task_models.attention_button(here)
shell.close_page(here)
