"""Tasks: what else is one layer good for?"""

from ui import shell
from ui.views import task_models, tasks_answers, tasks_entities, tasks_sentences

ENTITIES, ANSWERS, PAIRS, ACCEPT = "Entities", "Answers", "Sentence pairs", "Acceptability"

here = typed = shell.open_page(says_cut=False)
view, model_place = task_models.open_view([ENTITIES, ANSWERS, PAIRS, ACCEPT])
with model_place:
    if view == ENTITIES:
        here = task_models.with_head(here, "token_classification", "twin-bert-ner", "ner_model")
    elif view == ANSWERS:
        here = task_models.with_head(here, "question_answering", "twin-bert-squad", "answer_model")
    elif view == ACCEPT:
        here = task_models.with_head(here, "classification", "twin-bert-cola", "accept_model", label="acceptable")
if view == ENTITIES:
    read = (tasks_entities.draw(here),)
elif view == ANSWERS:
    read = (tasks_answers.draw(here),)
elif view == PAIRS:
    read = tasks_sentences.draw_pair(here)
else:
    read = (tasks_sentences.draw_acceptability(here),)
task_models.attention_buttons(*read)
shell.close_page(typed, shown=shell.status_line(*read), read=read)
