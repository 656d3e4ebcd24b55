"""A ball on grounds that bend: rolling, oscillating, leaving, wedged between walls."""

import numpy as np
import pytest
from robots import ball

from contact_sim import Simulator
from contact_sim.collision._terrain import CylinderGround, Planes, SphereGround

GRAVITY = 9.81
RADIUS = 0.1
SOLID = 0.4
"""Moment of inertia over m r²."""


def at_rest(terrain, position, friction=1.0, time_step=1e-3, velocity=(0.0,) * 6, model='ncp'):
    """Return a simulator with a solid ball of 1 kg at `position`."""
    sim = Simulator(
        ball(1.0, RADIUS, SOLID), model, terrain=terrain, friction=friction, time_step=time_step
    )
    sim.reset([*position, 0.0, 0.0, 0.0, 1.0], np.array(velocity))
    return sim


def period(sim, along):
    """Return the period of an oscillation that starts at rest on one side [s].

    Twice the time between the first two passages through the middle.
    """
    passages, before = [], sim.q[:3] @ along
    while len(passages) < 3:
        report = sim.step([])
        assert report.time < 20.0
        now = report.q[:3] @ along
        if before * now < 0.0 or now == 0.0:
            passages.append(report.time - sim.time_step * abs(now) / (abs(now) + abs(before)))
        before = now
    return passages[2] - passages[0]


@pytest.mark.parametrize('friction', [1.0, 0.0])
@pytest.mark.parametrize('heading', [0.0, 0.9])
@pytest.mark.parametrize('kind', ['bowl', 'pipe'])
def test_small_oscillations_in_a_hollow(kind, heading, friction):
    """ω² = g/(R − r) for a ball that slides, 5/7 of it for a solid ball that rolls.

    To second order in the amplitude the period of a pendulum is longer by (1 + θ²/16).
    """
    radius, angle, h = 0.6, 0.05, 1e-3
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    centre = (0.0, 0.0, radius)
    if kind == 'bowl':
        terrain = SphereGround(centre, radius, hollow=True)
    else:
        terrain = CylinderGround(centre, (-along[1], along[0], 0.0), radius, hollow=True)
    arm = radius - RADIUS
    start = centre + arm * (np.sin(angle) * along - [0.0, 0.0, np.cos(angle)])
    sim = at_rest(terrain, start, friction, h)
    share = 1.0 / (1.0 + SOLID) if friction else 1.0
    expected = 2.0 * np.pi / np.sqrt(share * GRAVITY / arm) * (1.0 + angle**2 / 16.0)
    assert period(sim, along) == pytest.approx(expected, rel=2e-3)


def test_a_ball_that_oscillates_rolls_and_stays_in_the_bowl():
    """It passes the bottom at v² = 2 g Δz/(1 + 2/5), pressed by m (g + v²/(R − r))."""
    radius, angle = 0.6, 0.4
    terrain = SphereGround((0.0, 0.0, radius), radius, hollow=True)
    arm = radius - RADIUS
    sim = at_rest(terrain, [arm * np.sin(angle), 0.0, radius - arm * np.cos(angle)], 1.0, 2e-4)
    while sim.q[0] > 0.0:
        report = sim.step([])
        assert report.contacts.slip_speed[0] < 1e-6
        assert abs(report.contacts.gap[0]) < 1e-5
    speed = np.linalg.norm(report.v[:3])
    assert speed == pytest.approx(
        np.sqrt(2.0 * GRAVITY * arm * (1.0 - np.cos(angle)) / (1.0 + SOLID)), rel=2e-3
    )
    assert np.linalg.norm(report.v[3:]) == pytest.approx(speed / RADIUS, rel=1e-3)
    pressed = GRAVITY + speed**2 / arm
    assert report.contacts.normal_force[0] == pytest.approx(pressed, rel=5e-3)


def roll_off(friction, model):
    """Return cos θ, speed and spin when the force on a ball ends that rolled down from the top."""
    radius, angle = 1.0, 0.02
    reach = radius + RADIUS
    share = 1.0 / (1.0 + SOLID) if friction else 1.0
    speed = np.sqrt(2.0 * share * GRAVITY * reach * (1.0 - np.cos(angle)))  # as from the top
    spin = speed / RADIUS if friction else 0.0
    sim = at_rest(
        SphereGround((0.0, 0.0, -radius), radius),
        [reach * np.sin(angle), 0.0, reach * np.cos(angle) - radius],
        friction, 2e-4, [speed * np.cos(angle), 0.0, -speed * np.sin(angle), 0.0, spin, 0.0],
        model,
    )  # fmt: skip
    report = sim.step([])
    while report.contacts.gap[0] < 1e-4:
        if report.contacts.normal_force[0] > 0.0:
            last = report
        report = sim.step([])
    v = last.v
    return (last.q[2] + radius) / reach, np.linalg.norm(v[:3]), np.linalg.norm(v[3:])


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_ball_that_sticks_leaves_a_sphere_at_10_17(model):
    """At cos θ = 10/17, its speed then √(g (R + r) cos θ)."""
    cos, speed, spin = roll_off(1e3, model)
    assert cos == pytest.approx(10.0 / 17.0, abs=2e-3)
    assert speed == pytest.approx(np.sqrt(GRAVITY * 1.1 * 10.0 / 17.0), rel=2e-3)
    assert spin == pytest.approx(speed / RADIUS, rel=2e-3)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_ball_without_friction_leaves_a_sphere_at_2_3(model):
    cos, speed, spin = roll_off(0.0, model)
    assert cos == pytest.approx(2.0 / 3.0, abs=2e-3)
    assert speed == pytest.approx(np.sqrt(GRAVITY * 1.1 * 2.0 / 3.0), rel=2e-3)
    assert spin < 1e-9


def walls(left, right):
    """Return a groove along y whose walls rise to both sides by `left` and `right` [rad]."""
    return Planes(
        (
            ((np.sin(left), 0.0, np.cos(left)), 0.0),
            ((-np.sin(right), 0.0, np.cos(right)), 0.0),
        )
    )


def in_the_groove(left, right):
    """Return the centre of a ball that touches both walls."""
    normals = [[np.sin(left), np.cos(left)], [-np.sin(right), np.cos(right)]]
    x, z = np.linalg.solve(normals, [RADIUS, RADIUS])
    return [x, 0.0, z]


@pytest.mark.parametrize(('left', 'right'), [(0.6, 0.6), (0.3, 0.9), (1.2, 0.5)])
def test_both_walls_of_a_groove_carry_a_ball(left, right):
    """Without friction: N1 = m g sin β2/sin(β1 + β2) and the other way round."""
    sim = at_rest(walls(left, right), in_the_groove(left, right), friction=0.0)
    for _ in range(200):
        report = sim.step([])
    total = np.sin(left + right)
    expected = GRAVITY * np.array([np.sin(right), np.sin(left)]) / total
    assert report.contacts.normal_force == pytest.approx(expected, rel=1e-6)
    assert np.abs(report.v).max() < 1e-9
    assert np.abs(report.contacts.gap).max() < 1e-7


def test_a_ball_slides_along_a_groove():
    """Friction is μ N of each wall: with walls at 45° μ m g √2, against the motion along y."""
    friction, angle, speed, steps = 0.1, np.pi / 4, 2.0, 200
    sim = at_rest(
        walls(angle, angle), in_the_groove(angle, angle), friction, velocity=[0, speed, 0, 0, 0, 0]
    )
    for _ in range(steps):
        report = sim.step([])
    normal = GRAVITY / np.sqrt(2.0)
    assert report.contacts.normal_force == pytest.approx([normal, normal], rel=1e-3)
    # rolling along a groove is slipping at first: both points of contact turn at r sin 45° below
    force = report.contacts.force.sum(axis=0)
    assert force[1] == pytest.approx(-friction * GRAVITY * np.sqrt(2.0), rel=1e-3)
    time, braking = steps * sim.time_step, friction * GRAVITY * np.sqrt(2.0)
    assert report.q[1] == pytest.approx(speed * time - 0.5 * braking * time**2, rel=1e-3)


def test_a_ball_rolls_down_an_inclined_groove():
    """Its points of contact are r cos β below the centre: a = g sin s / (1 + (2/5)/cos² β)."""
    slope, angle, steps = 0.2, 0.5, 500
    turn = np.array(
        [[1, 0, 0], [0, np.cos(slope), np.sin(slope)], [0, -np.sin(slope), np.cos(slope)]]
    )
    planes = [(tuple(turn @ normal), offset) for normal, offset in walls(angle, angle).planes]
    sim = at_rest(Planes(planes), turn @ in_the_groove(angle, angle), friction=1.0)
    for _ in range(steps):
        report = sim.step([])
        assert report.contacts.slip_speed.max() < 1e-6
    expected = GRAVITY * np.sin(slope) / (1.0 + SOLID / np.cos(angle) ** 2)
    downhill = turn @ [0.0, 1.0, 0.0]
    travelled = (report.q[:3] - turn @ in_the_groove(angle, angle)) @ downhill
    time = steps * sim.time_step
    assert travelled == pytest.approx(0.5 * expected * time**2, rel=5e-3)
    # the shares of normal forces and friction across the groove are undetermined, their sum is not
    force = turn.T @ report.contacts.force.sum(axis=0)
    assert force[[0, 2]] == pytest.approx([0.0, GRAVITY * np.cos(slope)], abs=1e-3)


def test_a_ball_rolls_along_a_pipe_as_on_a_plane():
    """A pipe that falls at angle s: a = (5/7) g sin s along its bottom."""
    slope, radius, steps = 0.15, 0.5, 500
    axis = np.array([0.0, np.cos(slope), -np.sin(slope)])
    up = np.array([0.0, np.sin(slope), np.cos(slope)])
    terrain = CylinderGround(tuple(radius * up), tuple(axis), radius, hollow=True)
    sim = at_rest(terrain, RADIUS * up)
    for _ in range(steps):
        report = sim.step([])
    travelled = report.q[:3] @ axis
    time = steps * sim.time_step
    expected = 0.5 * GRAVITY * np.sin(slope) / (1.0 + SOLID) * time**2
    assert travelled == pytest.approx(expected, rel=5e-3)
    assert report.contacts.normal_force[0] == pytest.approx(GRAVITY * np.cos(slope), rel=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_corner_stops_a_ball(model):
    """Wall and floor at once: both contacts close, nothing goes through either."""
    corner = Planes((((0.0, 0.0, 1.0), 0.0), ((-1.0, 0.0, 0.0), -0.5)))
    sim = at_rest(
        corner, [0.2, 0.0, RADIUS], friction=0.0, velocity=[1.0, 0, 0, 0, 0, 0], model=model
    )
    forces = np.array([sim.step([]).contacts.normal_force for _ in range(400)])
    assert sim.q[0] == pytest.approx(0.4, abs=2e-3)
    assert sim.q[2] == pytest.approx(RADIUS, abs=1e-6)
    assert forces[:, 0].mean() == pytest.approx(GRAVITY, rel=1e-3)
    assert sim.time_step * forces[:, 1].sum() == pytest.approx(1.0, rel=1e-6)


def test_hybrid_keeps_to_the_wall_of_a_bowl_to_higher_order():
    """Half a period of a large oscillation: energy and gap stay, J̇ v has the turning normal."""
    radius, angle = 0.6, 0.8
    arm = radius - RADIUS
    terrain = SphereGround((0.0, 0.0, radius), radius, hollow=True)
    start = [arm * np.sin(angle), 0.0, radius - arm * np.cos(angle)]
    sim = at_rest(terrain, start, 1.0, 1e-3, model='hybrid')
    height = start[2]
    for _ in range(600):
        report = sim.step([])
        assert abs(report.contacts.gap[0]) < 1e-7
        speed = report.v
        kinetic = 0.5 * speed[:3] @ speed[:3] + 0.5 * SOLID * RADIUS**2 * speed[3:] @ speed[3:]
        assert kinetic + GRAVITY * (report.q[2] - height) == pytest.approx(0.0, abs=1e-5)
