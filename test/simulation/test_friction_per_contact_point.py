"""Friction and restitution given per contact point, on grounds of one feature and of several."""

import numpy as np
import pytest
from robots import ball, rigid_body
from terrains import GROUNDS

from contact_sim import InvalidInput, Planes, Simulator, Worlds

FRICTION = (0.15, 0.35, 0.6)
GROOVE = Planes()


def triangle():
    """A plate on three spheres of 5 cm."""
    centres = [([0.2, 0.0, 0.0], 0.05), ([-0.1, 0.15, 0.0], 0.05), ([-0.1, -0.15, 0.0], 0.05)]
    return rigid_body('triangle', 1.0, 0.01 * np.eye(3), centres)


@pytest.mark.parametrize('ground', GROUNDS.values(), ids=GROUNDS)
def test_every_contact_of_a_point_slides_with_the_friction_of_that_point(ground):
    probe = Simulator(triangle(), terrain=ground)
    normal = ground.normals(probe.q[None, :3])[0]
    sim = Simulator(triangle(), terrain=ground, friction=FRICTION, gravity=-9.81 * normal)
    features = ground.features
    per_contact = np.repeat(FRICTION, features)
    assert np.array_equal(sim.friction, per_contact)
    rng, sliding = np.random.default_rng(0), set()
    aside = np.cross(normal, rng.standard_normal(3))
    sim.reset(v=[*(2.0 * aside - normal), *2.0 * rng.standard_normal(3)])
    for _ in range(400):
        contacts = sim.step(np.zeros(0)).contacts
        for i in np.flatnonzero((contacts.slip_speed > 1e-3) & (contacts.normal_force > 0.1)):
            normal, force = contacts.normal_force[i], contacts.force[i]
            tangential = np.sqrt(max(force @ force - normal**2, 0.0))
            assert tangential / normal == pytest.approx(per_contact[i], rel=1e-6)
            sliding.add(int(i))
    assert len({i // features for i in sliding}) >= 2


def test_a_sphere_in_a_groove_rubs_on_both_sides():
    # each side carries m g / √2: it slows down at √2 μ g until it rolls, after 0.16 s
    for friction in (0.2, [0.2], [0.2, 0.2]):
        sim = Simulator(ball(), terrain=GROOVE, friction=friction)
        assert sim.friction.tolist() == [0.2, 0.2]
        sim.reset([0, 0, 0.1 * np.sqrt(2.0), 0, 0, 0, 1], [0, 1.0, 0, 0, 0, 0])
        for _ in range(50):
            sim.step(np.zeros(0))
        exact = 1.0 - 0.05 * 0.2 * np.sqrt(2.0) * 9.81
        assert np.linalg.norm(sim.v[:3]) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize('name', ['friction', 'restitution'])
@pytest.mark.parametrize('count', [2, 4, 5, 7])
def test_other_lengths_are_refused_with_the_two_that_fit(name, count):
    message = rf'(?s){name} = .*one number or 3 \(per contact point\) or 6 \(per contact\)'
    with pytest.raises(InvalidInput, match=message):
        Simulator(triangle(), terrain=GROOVE, **{name: np.full(count, 0.3)})
    sim = Simulator(triangle(), terrain=GROOVE)
    before = getattr(sim, name)
    with pytest.raises(InvalidInput, match=message):
        setattr(sim, name, np.full(count, 0.3))
    with pytest.raises(InvalidInput, match=message):
        setattr(sim, name, np.full((1, 3, 1), 0.3))
    assert np.array_equal(getattr(sim, name), before)


def test_every_contact_may_have_a_number_of_its_own():
    sim = Simulator(triangle(), terrain=GROOVE)
    sim.friction = own = np.linspace(0.1, 0.6, 6)
    sim.restitution = [0.1, 0.2, 0.3]
    assert np.array_equal(sim.friction, own)
    assert sim.restitution.tolist() == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]


def test_worlds_take_friction_per_contact_point_too():
    rows = [FRICTION, FRICTION[::-1]]
    worlds = Worlds(triangle(), 2, terrain=GROOVE, friction=rows, threads=1)
    sims = [Simulator(triangle(), terrain=GROOVE, friction=row) for row in rows]
    worlds.step(np.zeros((2, 0)), 50)
    for k, sim in enumerate(sims):
        for _ in range(50):
            sim.step(np.zeros(0))
        assert np.array_equal(worlds.q[k], sim.q)
    with pytest.raises(InvalidInput, match=r'friction: shape \(4,\)'):
        Worlds(triangle(), 2, terrain=GROOVE, friction=np.ones(4), threads=1)
