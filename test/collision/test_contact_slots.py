"""Impulses and memory follow the features of the ground from slot to slot."""

import numpy as np
import pytest

from contact_sim.collision._contact_slots import NO_FEATURE, carry_over


def carried(features, before, after):
    """Return impulses and memory of slots whose rows were named after their features."""
    before, after = np.array(before, dtype=float), np.array(after, dtype=float)
    slots = np.arange(len(before))
    named = np.where(before == NO_FEATURE, 0.0, before + 100.0 * (slots // features) + 1.0)
    impulse = np.append(np.repeat(named, 3) + np.tile([0.0, 0.1, 0.2], len(before)), [7.0])
    impulse[: 3 * len(before)][np.repeat(named, 3) == 0.0] = 0.0
    memory = np.repeat(named[:, None], 4, axis=1)
    kept = before.copy()
    turned = np.zeros((len(before), 3, 3))  # normals at right angles to each other
    carry_over(
        (0, len(after), features, np.inf), (before, turned), (after, turned), impulse, memory
    )
    assert (before == kept).all()
    assert impulse[-1] == 7.0  # rows that belong to no contact
    assert (memory == memory[:, :1]).all()
    rows = impulse[:-1].reshape(-1, 3)
    assert (
        np.abs(np.where(rows[:, :1] != 0.0, rows - rows[:, :1] - [0.0, 0.1, 0.2], 0.0)).max()
        < 1e-12
    )
    assert (rows[:, 0] == memory[:, 0]).all()
    return memory[:, 0].tolist()


@pytest.mark.parametrize(
    ('features', 'before', 'after', 'expected'),
    [
        (1, [0, 0], [0, 0], [1, 101]),
        (2, [0, 1, 0, 1], [0, 1, 0, 1], [1, 2, 101, 102]),
        (2, [0, 1, 0, 1], [0, 1, 1, 0], [1, 2, 102, 101]),
        (2, [5, 9], [9, 7], [10, 0]),
        (3, [4, 5, 6], [6, 4, 5], [7, 5, 6]),
        (3, [4, 5, 6], [8, 4, 9], [0, 5, 0]),
        (2, [5, -1], [-1, 5], [0, 6]),
        (2, [5, -1], [3, 5], [0, 6]),
        (2, [5, 6], [-1, -1], [0, 0]),
        (4, [0, 1, 2, 3], [3, 9, 0, -1], [4, 0, 1, 0]),
    ],
)
def test_rows_follow_their_feature(features, before, after, expected):
    assert carried(features, before, after) == expected


def test_any_change_keeps_what_stays_and_forgets_the_rest():
    random = np.random.default_rng(7)
    for _ in range(500):
        features, candidates = random.integers(1, 5), random.integers(1, 4)
        before = np.concatenate([random.permutation(6)[:features] for _ in range(candidates)]) - 1
        after = np.concatenate([random.permutation(6)[:features] for _ in range(candidates)]) - 1
        held = {
            (i // features, f): f + 100.0 * (i // features) + 1.0
            for i, f in enumerate(before.tolist()) if f != NO_FEATURE
        }  # fmt: skip
        expected = [held.get((i // features, f), 0.0) for i, f in enumerate(after.tolist())]
        assert carried(features, before, after) == expected


def frames_of(*normals):
    frames = np.zeros((len(normals), 3, 3))
    frames[:, 2] = [np.array(n) / np.linalg.norm(n) for n in normals]
    return frames


def test_a_contact_goes_on_from_facet_to_facet_while_its_normal_turns_little():
    up, wall, tilted, leaning = (0, 0, 1), (1, 0, 0), (0.2, 0, 1), (1, 0, 0.3)
    impulse, memory = np.arange(9.0), np.repeat(np.arange(3.0)[:, None], 4, axis=1)
    before = np.array([10.0, 20.0, 30.0]), frames_of(up, wall, (0, 1, 0))
    # the tilted one has left its facet, the wall has kept its own, the third is not like any
    after = np.array([20.0, 11.0, 31.0]), frames_of(wall, tilted, (0, -1, 0))
    carry_over((0, len(after[0]), 3, np.inf), before, after, impulse, memory)
    assert impulse.tolist() == [3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    assert memory[:, 0].tolist() == [1.0, 0.0, 0.0]
    # of two that have left, each goes on where it has turned least
    impulse = np.arange(9.0)
    after = np.array([40.0, 50.0, NO_FEATURE]), frames_of(leaning, tilted, up)
    carry_over((0, len(after[0]), 3, np.inf), before, after, impulse, memory)
    assert impulse.tolist() == [3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]
