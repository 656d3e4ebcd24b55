"""Contact of jiminy, step by step from its own states: docs/engines/jiminy.md.

jiminy may be in an environment of its own, whose interpreter the variable JIMINY_PYTHON names.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots import cube, rigid_body

from contact_sim import Compliant, Ncp, Simulator, Todorov

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))
from jiminy_peer import Launch, in_jiminy

H, GRAVITY, FRICTION = 1e-3, 9.81, 0.4
NO_EFFORT = np.zeros(0)
OMEGA, REGULARISATION = 2.0 * np.pi * 20.0, 1e-3
"""Defaults of jiminy: stabilizationFreq [rad/s], regularization."""
SETTLED = 2.0 * FRICTION * GRAVITY / (2.0 * OMEGA)
"""Twice the speed [m/s] below which friction of `constraint` no longer slides."""
EXPLICIT = {'odeSolver': 'euler_explicit'}

BALL = Launch(
    mass=2.0, inertia=(1e9, 1e9, 1e9), points=[(0.0, 0.0, -0.1)],
    q=[0.0, 0.0, 0.1 - 1e-5, 0.0, 0.0, 0.0, 1.0], v=[0.0] * 6, steps=300, time_step=H,
    contacts={'model': 'constraint', 'friction': FRICTION}, stepper=EXPLICIT,
)  # fmt: skip
CUBE = replace(
    BALL, mass=1.0, inertia=(0.04 / 6,) * 3,
    points=[(0.1 * x, 0.1 * y, -0.1) for x in (-1, 1) for y in (-1, 1)],
)  # fmt: skip
HIGH = [0.0, 0.0, 0.105, 0.0, 0.0, 0.0, 1.0]
LANDING = {'q': HIGH, 'v': [0.0, 0.0, -0.5, 0.0, 0.0, 0.0]}


def motions_of(*launches):
    try:
        return in_jiminy(*launches)
    except ImportError as error:
        pytest.skip(f'jiminy is not installed, here or in JIMINY_PYTHON: {error}')


def motion_of(launch):
    return motions_of(launch)[0]


def next_velocities(launch, model, q, v, friction=FRICTION):
    """Our next velocity (steps, 6) from each state of jiminy."""
    ball = rigid_body('ball', 2.0, 1e9 * np.eye(3), [([0.0, 0.0, -0.1], 0.0)])
    sim = Simulator(
        ball if len(launch.points) == 1 else cube(), model, friction=friction,
        time_step=launch.time_step, gravity=launch.gravity,
    )  # fmt: skip
    sim.baumgarte = 0.0  # a body at rest in jiminy is in the ground
    found = []
    for start in zip(q[:-1], v[:-1], strict=True):
        sim.reset(*start)
        found.append(sim.step(NO_EFFORT).v)
    return np.array(found)


def constraint_of_jiminy():
    """Its regularised constraint as soft contact of MuJoCo: b = 2 ω, k = ω², R = 1e-3 diag(A)."""
    impedance = 1.0 / (1.0 + REGULARISATION)
    return Todorov(
        cone='elliptic', diagonal='exact', time_constant=1.0 / (impedance * OMEGA),
        damping_ratio=np.sqrt(impedance), impedance_start=impedance, impedance_end=impedance,
    )  # fmt: skip


@pytest.mark.parametrize(
    ('launch', 'allowed'),
    [
        (replace(BALL, **LANDING), 1e-12),
        (replace(BALL, gravity=(2.0, 1.0, -9.81)), 1e-12),
        (replace(CUBE, **LANDING), 1e-6),
        (replace(CUBE, gravity=(2.0, 1.0, -9.81)), 1e-7),  # what its sweeps leave over
    ],
    ids=['ball lands', 'ball under side load', 'cube lands', 'cube under side load'],
)
def test_constraint_without_slip_is_soft_contact(launch, allowed):
    q, v = motion_of(launch)
    ours = next_velocities(launch, constraint_of_jiminy(), q, v)
    # its integrator divides the first step
    assert np.abs(ours - v[1:])[1:].max() <= allowed
    assert np.abs(q[-1, 2] - 0.1) < 1e-5 < np.abs(np.diff(v, axis=0)).max()  # it did rest


@pytest.mark.parametrize('degrees', [0.0, 22.5, 45.0])
def test_constraint_that_slides_is_rigid_contact_with_circular_friction(degrees):
    heading = np.radians(degrees)
    v = [2.0 * np.cos(heading), 2.0 * np.sin(heading), 0.0, 0.0, 0.0, 0.0]
    q, v = motion_of(replace(CUBE, v=v, steps=500))
    ours = next_velocities(CUBE, Ncp(), q, v)
    slides = np.linalg.norm(v[:-1, :2], axis=1) > SETTLED
    slides[:100] = False  # it comes to lie on its soft ground
    assert slides.sum() > 350
    assert np.abs(ours - v[1:])[slides, :3].max() <= 1e-6


STIFFNESS, DAMPING = 1e5, 200.0
FASTEST = 4.0
"""Speed [m/s] up to which friction is compared."""


@pytest.mark.parametrize('v', [[0.0, 0.0, -0.5], [1.0, 0.5, -0.3], [-3.0, 2.0, 0.0]])
def test_spring_damper_has_friction_in_proportion_to_speed(v):
    """μ f_n |v|, not μ f_n: our `piecewise` below a slip speed of V, with μ V as friction."""
    launch = replace(
        BALL, q=HIGH, v=[*v, 0.0, 0.0, 0.0], time_step=1e-4, steps=2000, stepper=EXPLICIT,
        contacts={
            'model': 'spring_damper', 'friction': FRICTION, 'stiffness': STIFFNESS,
            'damping': DAMPING, 'transitionEps': 0.0, 'transitionVelocity': 1e-12,
        },
    )  # fmt: skip
    model = Compliant(
        normal_law='kelvin_voigt', stiffness=STIFFNESS, friction_law='piecewise',
        damping_ratio=DAMPING / (2.0 * np.sqrt(STIFFNESS * launch.mass)), slip_speed=FASTEST,
        integration='explicit',
    )  # fmt: skip
    q, v = motion_of(launch)
    ours = next_velocities(launch, model, q, v, friction=FRICTION * FASTEST)
    assert np.abs(ours - v[1:])[1:].max() <= 1e-12
    assert q[:, 2].min() < 0.1 - 1e-3


@pytest.mark.parametrize('model', ['constraint', 'spring_damper'])
def test_stopping_distances_at_the_defaults(model):
    """v²/(2 μ g) under `constraint`, v (1 − e^(−μ g t))/(μ g) under `spring_damper`."""
    slowing = FRICTION * GRAVITY
    ends = {'constraint': 0.5, 'spring_damper': 1.0 - np.exp(-slowing)}
    launches = [
        replace(
            CUBE, v=[np.cos(heading), np.sin(heading), 0.0, 0.0, 0.0, 0.0], steps=1000,
            stepper={}, contacts={'model': model, 'friction': FRICTION},
        )
        for heading in np.radians([0.0, 22.5, 45.0])
    ]  # fmt: skip
    for q, _ in motions_of(*launches):
        assert np.linalg.norm(q[-1, :2]) == pytest.approx(ends[model] / slowing, rel=1e-3)


def test_a_cube_under_side_load_creeps():
    """At a third of μ f_n: by R f_t/b under `constraint`, else by f_t/(μ f_n) in m/s."""
    side = 1.3
    loaded = replace(CUBE, gravity=(side, 0.0, -GRAVITY), steps=1000, stepper={})
    soft = replace(loaded, contacts={'model': 'spring_damper', 'friction': FRICTION})
    (_, v), (_, fast) = motions_of(loaded, soft)
    assert v[-1, 0] == pytest.approx(REGULARISATION * side / (2.0 * OMEGA), rel=1e-2)
    assert fast[-1, 0] == pytest.approx(side / (FRICTION * GRAVITY), rel=5e-2)
