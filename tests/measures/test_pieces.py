"""A whole vocabulary is read once a tokenizer, however many guesses ask about it."""

from types import SimpleNamespace

import pytest

from bert_core import load_engine
from bert_core.measures import pieces
from bert_core.measures.predictions import Gap, Guess
from bert_core.tokenizer import Tokenizer
from ui.views import masking_put


class Counted:
    """A tokenizer that counts how often its vocabulary is made."""

    def __init__(self, vocabulary):
        self.vocabulary, self.specials, self.asked = vocabulary, {"unk": "[UNK]"}, 0

    @property
    def backend(self):
        return SimpleNamespace(get_vocab=self._make)

    def _make(self):
        self.asked += 1
        return dict(self.vocabulary)


@pytest.fixture
def tokenizer():
    return Counted({"[UNK]": 0, "a": 1, "b": 2, "c": 7})


class CountedLibrary:
    """The library's tokenizer, which counts how often its vocabulary is made."""

    def __init__(self, fast):
        self.fast, self.asked = fast, 0

    def __getattr__(self, name):
        return getattr(self.fast, name)

    def get_vocab(self, **asked):
        self.asked += 1
        return self.fast.get_vocab(**asked)


def test_all_cards_of_many_key_presses_read_the_vocabulary_once_for_each_question():
    """Which id is the largest, and what marks a piece that begins a word."""
    shipped = load_engine("twin-bert").loaded().tokenizer
    library = CountedLibrary(shipped.backend)
    tokenizer = Tokenizer(library, shipped.limit, shipped.specials)
    guesses = tuple(Guess(tokenizer.id_of(word), word, 0.1) for word in ("[UNK]", "door", "##s"))
    gaps = [Gap(n, guesses) for n in (3, 5)]
    for _ in range(2):
        cards = [{"lists": [{"rows": [{}, {}, {}]}]} for _ in gaps]
        masking_put.mark(cards, gaps, tokenizer)
        assert [card["lists"][0]["rows"] for card in cards] == [[{}, *({"put": guess.id} for guess in guesses[1:])]] * 2
        assert [card["position"] for card in cards] == [3, 5]
    assert library.asked == 2


def test_named_ids_are_read_once_and_nobody_can_change_them(tokenizer):
    assert sorted(pieces.named_ids(tokenizer)) == [0, 1, 2, 7]
    assert pieces.named_ids(tokenizer) is pieces.named_ids(tokenizer)
    assert tokenizer.asked == 1
    with pytest.raises(ValueError, match="read-only"):
        pieces.named_ids(tokenizer)[0] = 5


def test_the_same_ids_of_the_same_pieces_in_whatever_order(tokenizer):
    turned = Counted(dict(reversed(tokenizer.vocabulary.items())))
    assert pieces.same_pieces(tokenizer, turned)
    assert pieces.same_pieces(tokenizer, turned)
    assert (tokenizer.asked, turned.asked) == (1, 1)
    assert not pieces.same_pieces(tokenizer, Counted(tokenizer.vocabulary | {"c": 6}))
    assert not pieces.same_pieces(tokenizer, Counted(tokenizer.vocabulary | {"d": 8}))
