"""The class's guesses and the model's, as bars side by side."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from bert_core.figures import theme
from bert_core.figures.theme import escape
from bert_core.measures.poll import Guess

#: Colour of the class's guesses.
PEOPLE = theme.KINDS[1]


def poll_figure(guesses: Sequence[Guess], model: str) -> go.Figure:
    """Two bars a word: share of the class, probability of the model; both 0 to 1."""
    words, model = [escape(guess.word) for guess in guesses], escape(model)
    figure = go.Figure()
    figure.add_bar(y=words, x=[g.share for g in guesses], name="the class", orientation="h",
                   marker={"color": PEOPLE}, hovertemplate="%{y}: %{x:.0%} of the class<extra></extra>")
    figure.add_bar(y=words, x=[g.probability for g in guesses], name=model, orientation="h",
                   marker={"color": theme.BOTH_WAYS}, hovertemplate="%{y}: %{x:.1%}<extra>" + model + "</extra>")
    theme.style(figure, x="share of the class,<br>probability of the model",
                height=110 + 46 * len(words))
    return theme.put(figure, xaxis={"range": [0, 1], "tickformat": ".0%"},
                     yaxis={"autorange": "reversed", "type": "category"})
