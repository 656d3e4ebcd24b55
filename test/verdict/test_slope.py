"""Steps along the slope of the margin, on failures that are known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contact_sim.campaign import Trial, run_trial
from contact_sim.verdict._plan import factors_of
from contact_sim.verdict._search import disturbed, limit_along, margin_left, smallest_failure
from contact_sim.verdict._slope import slope_at, smaller_failure

# --- A plane: margin 1 − a x


def plane(a):
    return lambda points: 1.0 - np.array(points) @ a


def test_the_slope_of_a_plane_is_exact():
    a = np.array([1.5, 0.0, -2.0])
    slope = slope_at(plane(a), np.array([0.995, 0.5, 0.0]), 0.02)  # one coordinate at its end
    np.testing.assert_allclose(slope, -a, atol=1e-12)


@pytest.mark.parametrize('a', [(4.0, 3.0), (2.0, 2.0, 2.0), (5.0, 0.0, -4.0), (1.2, 3.0, 0.5)])
def test_the_nearest_point_of_a_plane_is_found(a):
    """It lies along a without its negative parts, at the distance 1 / |a⁺|."""
    a = np.array(a)
    count = []

    def margins(points):
        count.extend(points)
        return plane(a)(points)

    down = np.maximum(a, 0.0)
    start = np.eye(len(a))[0] / a[0] * 1.001
    found = smaller_failure(margins, start)
    nearest = down / (down @ down)
    assert margins([found])[0] < 0.0
    assert np.linalg.norm(found) <= 1.04 * np.linalg.norm(nearest)
    assert found @ nearest >= 0.999 * np.linalg.norm(found) * np.linalg.norm(nearest)
    assert len(count) < 60


def test_without_time_it_stays_where_it_is():
    start = np.array([0.3, 0.4])
    found = smaller_failure(lambda points: np.full(len(points), np.nan), start)
    assert np.array_equal(found, start)


def test_a_run_that_is_refused_does_not_fail():
    row = {'success': False, 'outcome': 'refused', 'margin': np.nan}
    assert margin_left(row) > 0.0
    assert margin_left({**row, 'outcome': 'hung'}) == -1.0
    assert margin_left({**row, 'outcome': 'missed', 'margin': -0.25}) == -0.25
    assert margin_left({'success': True, 'outcome': 'ok', 'margin': 0.5}) == 0.5


# --- A block on four feet that is pushed: it slides v T / 2 + v² / (2 μ g), v = J / m − μ g T

MASS, FRICTION, FARTHEST, PUSH_TIME, G = 2.0, 0.5, 0.05, 0.1, 9.81
BLOCK = """<robot name="block">
<link name="base"><inertial><mass value="1.999"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="wheel"><inertial><mass value="0.001"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="wheel"/>
<axis xyz="0 0 1"/><limit effort="1" velocity="10"/></joint>
{}</robot>"""
FOOT = """<link name="foot_{0}"><collision><geometry><sphere radius="0.01"/></geometry></collision>
</link><joint name="fix_{0}" type="fixed"><parent link="base"/><child link="foot_{0}"/>
<origin xyz="{1} {2} 0"/></joint>"""


@pytest.fixture
def block(tmp_path):
    corners = [(0.2, 0.2), (0.2, -0.2), (-0.2, 0.2), (-0.2, -0.2)]
    feet = ''.join(FOOT.format(k, *corner) for k, corner in enumerate(corners))
    (tmp_path / 'block.urdf').write_text(BLOCK.format(feet))
    (tmp_path / 'slide.yaml').write_text(
        f'seconds: 1.5\nfriction: {FRICTION}\nlargest_drift: {FARTHEST}\n'
    )
    (tmp_path / 'idle.py').write_text(
        'import numpy as np\ndef effort(time, q, v):\n    return np.zeros(1)\n'
    )
    return Trial(
        f'{tmp_path}/idle.py:effort', str(tmp_path / 'block.urdf'), str(tmp_path / 'slide.yaml'),
        feet='foot_0,foot_1,foot_2,foot_3',
    )  # fmt: skip


def smallest_push(mu):
    """Return the impulse after which the block has slid FARTHEST [N s]."""
    a = mu * G
    v = a * (np.sqrt(0.25 * PUSH_TIME**2 + 2.0 * FARTHEST / a) - 0.5 * PUSH_TIME)
    return MASS * (v + a * PUSH_TIME)


@pytest.mark.parametrize('law', ['ncp', 'hybrid'])
@pytest.mark.parametrize('push', [1.5, 2.0])
def test_the_margin_of_a_sliding_block(block, push, law):
    row = run_trial(replace(block, push=push, contact_model=law))
    a = FRICTION * G
    v = push / MASS - a * PUSH_TIME
    slid = 0.5 * v * PUSH_TIME + v**2 / (2.0 * a)
    assert row['margin'] == pytest.approx(1.0 - slid / FARTHEST, abs=1e-4)
    assert (row['margin'] < 0.0) is not row['success']


def test_the_smallest_push_and_loss_of_friction_that_move_a_block_too_far(block):
    """Against the nearest point of the limit in closed form."""
    factors = [f for f in factors_of(block, MASS, FRICTION) if f.name in ('friction', 'push')]
    push = next(f for f in factors if f.name == 'push')
    loss = np.linspace(0.0, 0.9, 10001)
    nearest = np.hypot(loss, smallest_push(FRICTION * (1.0 - 0.95 * loss)) / push.reach).min()
    count = []

    def evaluate(trials):
        count.extend(trials)
        return [run_trial(trial) for trial in trials]

    def margins(points):
        return np.array([margin_left(row) for row in evaluate(
            [disturbed(block, factors, point) for point in points]
        )])  # fmt: skip

    alone = push.distance(smallest_push(FRICTION))
    start = np.where([f.name == 'push' for f in factors], alone + 0.01, 0.0)
    found = smaller_failure(margins, start)
    assert np.linalg.norm(found) < 0.95 * np.linalg.norm(start)  # both at once: a smaller one
    assert nearest <= np.linalg.norm(found) <= 1.02 * nearest
    assert len(count) < 50
    # and the same from the command's own start, with CMA-ES behind it
    ends = limit_along(evaluate, block, factors)
    limits = {'push': push.distance(min(x for x, works in ends['push'] if not works))}
    worst = smallest_failure(
        evaluate, block, factors, limits, lambda trial: (run_trial(trial), None)
    )
    assert nearest <= worst.size <= 1.02 * nearest
    assert worst.repeats
