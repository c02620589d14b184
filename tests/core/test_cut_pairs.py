"""What of a pair fits: the longer sentence loses its end first."""

import pytest

from bert_core.tokenizer import _fitting


@pytest.mark.parametrize(("lengths", "room", "kept"), [
    ((2, 7), 6, (2, 4)), ((7, 2), 6, (4, 2)), ((5, 5), 7, (3, 4)), ((6, 5), 7, (4, 3)), ((3, 2), 5, (3, 2)),
    ((3, 2), 4, (2, 2)), ((1, 9), 3, (1, 2)), ((3, 2), 0, (0, 0)), ((3, 2), -1, (0, 0))])
def test_the_longest_sentence_loses_its_end(lengths, room, kept):
    sequence_ids = [None, *[0] * lengths[0], None, *[1] * lengths[1], None]
    places = _fitting(sequence_ids, room + 3)
    specials, second = [0, lengths[0] + 1, len(sequence_ids) - 1], lengths[0] + 2
    assert places == sorted([*specials, *range(1, 1 + kept[0]), *range(second, second + kept[1])])
