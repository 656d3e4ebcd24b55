"""Settings of other simulators, converted as docs/how_to/migrate_*.md say: the same physics.

MuJoCo step by step: test_todorov_mujoco.py; Drake with equal materials: test_sap_drake.py.
"""

import numpy as np
import pytest
from robots import cube, pose, rigid_body

from contact_sim import Compliant, Lcp, Ncp, Sap, Simulator

GRAVITY, H = 9.81, 1e-3
NO_EFFORT = np.zeros(0)
MASS, RADIUS = 2.0, 0.1
FIRST, SECOND = (1e5, 10.0, 1.0, 0.02), (4e5, 2.0, 0.6, 0.05)
"""Stiffness [N/m], dissipation [s/m], friction relaxation time [s] of ball and ground."""


def inert_ball():
    """A ball that does not turn: what it touches with has the speed of its centre."""
    return rigid_body('ball', MASS, 1e9 * np.eye(3), [([0.0, 0.0, 0.0], RADIUS)])


def material(stiffness, dissipation, friction, relaxation_time):
    from pydrake.geometry import AddContactMaterial, ProximityProperties
    from pydrake.multibody.plant import CoulombFriction

    properties = ProximityProperties()
    AddContactMaterial(
        dissipation=dissipation, point_stiffness=stiffness,
        friction=CoulombFriction(friction, friction), properties=properties,
    )  # fmt: skip
    properties.AddProperty('material', 'relaxation_time', relaxation_time)
    return properties


def in_drake(approximation, stiction_tolerance, height, velocity, steps):
    """Velocities (steps, 3) [m/s] of the ball on the ground in Drake, world axes."""
    from drake_peer import APPROXIMATIONS
    from pydrake.geometry import HalfSpace, Sphere
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
    from pydrake.multibody.tree import SpatialInertia, UnitInertia
    from pydrake.systems.analysis import Simulator as DrakeSimulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, H)
    plant.set_discrete_contact_approximation(APPROXIMATIONS[approximation])
    plant.set_stiction_tolerance(stiction_tolerance)
    inertia = SpatialInertia(MASS, np.zeros(3), UnitInertia(1e9, 1e9, 1e9))
    body, at = plant.AddRigidBody('ball', inertia), RigidTransform()
    plant.RegisterCollisionGeometry(body, at, Sphere(RADIUS), 'ball', material(*FIRST))
    plant.RegisterCollisionGeometry(
        plant.world_body(), at, HalfSpace(), 'ground', material(*SECOND)
    )
    plant.Finalize()
    simulator = DrakeSimulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    plant.SetPositions(context, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS + height])
    plant.SetVelocities(context, [0.0, 0.0, 0.0, *velocity])
    found = np.empty((steps, 3))
    for k in range(steps):
        simulator.AdvanceTo((k + 0.5) * H)
        found[k] = plant.GetVelocities(context)[3:]
    return found


@pytest.mark.parametrize('approximation', ['lagged', 'similar', 'sap'])
def test_two_materials_of_drake_are_one_pair_here(approximation):
    """Of unequal materials: every rule that joins them would show with another one."""
    pytest.importorskip('pydrake.multibody.plant', reason='the peer Drake is not installed')
    (k_a, d_a, mu_a, tau_a), (k_b, d_b, mu_b, tau_b) = FIRST, SECOND
    model = Sap(
        approximation=approximation, stiffness=k_a * k_b / (k_a + k_b),
        dissipation=(k_b * d_a + k_a * d_b) / (k_a + k_b), relaxation_time=tau_a + tau_b,
        stiction_tolerance=1e-3, tolerance=1e-12,
    )  # fmt: skip
    friction = 2.0 * mu_a * mu_b / (mu_a + mu_b)
    sim = Simulator(inert_ball(), model, friction=friction, time_step=H)
    height, velocity, steps = 5e-4, (0.3, -0.1, -0.2), 100
    sim.reset(pose(z=RADIUS + height), [*velocity, 0.0, 0.0, 0.0])
    ours = np.array([sim.step(NO_EFFORT).v[:3] for _ in range(steps)])
    theirs = in_drake(approximation, 1e-3, height, velocity, steps)
    assert np.abs(theirs[-1, :2]).max() < 0.1 < np.abs(theirs[:5, :2]).max()  # it slid and held
    assert np.abs(ours - theirs).max() <= 1e-5 * np.linalg.norm(velocity)


def ode_step(depth, velocity, kp, kd):
    """One step of ODE, hence of Bullet with contactStiffness and contactDamping: velocity after.

    ERP = h kp/(h kp + kd), CFM = 1/(h kp + kd), u⁺ + CFM f = ERP depth/h, f ≥ 0
    """
    erp, cfm = H * kp / (H * kp + kd), 1.0 / (H * kp + kd)
    free = velocity - H * GRAVITY
    if depth <= 0.0:
        return free
    force = (erp * depth / H - free) / (cfm + H / MASS)
    return free + H * max(force, 0.0) / MASS


@pytest.mark.parametrize(('kp', 'kd'), [(1e4, 100.0), (1e6, 50.0), (1e5, 2e3)])
@pytest.mark.parametrize('law', ['sap', 'compliant'])
def test_kp_and_kd_of_gazebo_classic_and_of_bullet(law, kp, kd):
    if law == 'sap':
        model = Sap(
            approximation='sap', stiffness=kp, relaxation_time=kd / kp, beta=0.0, tolerance=1e-13
        )
    else:
        ratio = kd / (2.0 * np.sqrt(kp * MASS))
        model = Compliant(
            normal_law='kelvin_voigt', stiffness=kp, damping_ratio=ratio, tolerance=1e-13
        )
    sim = Simulator(inert_ball(), model, time_step=H)
    height, velocity = -1e-6, -0.5  # touching: compliant would act a step before it does
    sim.reset(pose(z=RADIUS + height), [0.0, 0.0, velocity, 0.0, 0.0, 0.0])
    steps = 0
    while height < 0.0 and steps < 300:
        velocity = ode_step(-height, velocity, kp, kd)
        height += H * velocity
        report = sim.step(NO_EFFORT)
        steps += 1
        assert report.v[2] == pytest.approx(velocity, abs=1e-9)
        assert report.contacts.gap[0] == pytest.approx(height, abs=1e-10)
    assert steps > 3


def test_a_share_of_the_depth_per_step_is_erp():
    """PyBullet 3.2.7, contactERP 0.08: 0.0792 m/s out of 1 mm, less its slop of 10 µm."""
    sim = Simulator(inert_ball(), Ncp(), gravity=0.0, time_step=H)
    sim.baumgarte = 0.08
    sim.reset(pose(z=RADIUS - 0.99e-3))
    assert sim.step(NO_EFFORT).v[2] == pytest.approx(0.0792, abs=1e-9)


@pytest.mark.parametrize(
    ('model', 'degrees', 'distance'),
    [
        # DART 6.20.0, μ = 0.8 on 0.4 (the smaller), and PyBullet 3.2.7, 0.8 on 0.5 (the product)
        (Lcp(friction_law='box'), 0.0, (0.12692126, None)),
        (Lcp(friction_law='box'), 45.0, (0.08960069, 0.08959808)),
        (Ncp(), 0.0, (None, 0.12691988)),
        (Ncp(), 45.0, (None, 0.12695544)),
    ],
    ids=['box along', 'box across', 'cone along', 'cone across'],
)
def test_the_boxes_of_dart_and_the_cones_of_bullet(model, degrees, distance):
    sim = Simulator(cube(), model, friction=0.4, time_step=H)
    heading = np.radians(degrees)
    sim.reset(pose(z=0.1), [np.cos(heading), np.sin(heading), 0.0, 0.0, 0.0, 0.0])
    for _ in range(300):
        sim.step(NO_EFFORT)
    way = float(np.linalg.norm(sim.q[:2]))
    share = np.sqrt(2.0) if isinstance(model, Lcp) and degrees else 1.0
    slowing = share * 0.4 * GRAVITY * H  # per step; the last step only stops
    assert way == pytest.approx(H * np.arange(1.0 - slowing, 0.0, -slowing).sum(), rel=1e-6)
    for theirs in filter(None, distance):
        assert way == pytest.approx(theirs, rel=1e-3)
