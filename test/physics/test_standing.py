"""Robots that stand, slide and stay: the figures the product is judged by."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from robots import centre_of_mass_acceleration, stand

from contact_sim import InclinedPlane, Simulator, contact_models, load_robot, robots
from contact_sim.dynamics._integration import INTEGRATORS
from contact_sim.step._workspace import SLIP

GRAVITY = 9.81
SLOPE = np.deg2rad(20.0)
TERRAINS = {'plane': 'plane', 'slope': InclinedPlane(SLOPE)}

load_robot = cache(load_robot)


@pytest.mark.parametrize(
    ('name', 'terrain', 'integrator'),
    [  # all pairs
        (name, terrain, INTEGRATORS[(i + j) % len(INTEGRATORS)])
        for i, name in enumerate(['go1', 'anymal_b', 'solo12'])
        for j, terrain in enumerate(TERRAINS)
    ],
)
def test_stands_without_creep_or_penetration(name, terrain, integrator):
    robot = load_robot(name)
    sim = Simulator(robot, 'ncp', terrain=TERRAINS[terrain], friction=0.8, integrator=integrator)
    reports = stand(sim, 5000)
    weight = robot.total_mass * GRAVITY
    for report in reports:
        acceleration = centre_of_mass_acceleration(robot, report)
        expected = robot.total_mass * (acceleration + [0.0, 0.0, GRAVITY])
        assert np.abs(report.contacts.force.sum(axis=0) - expected).max() <= 1e-9 * weight
        assert report.contacts.gap.min() >= -1e-6
    for report in reports[-3000:]:
        loaded = report.contacts.normal_force > 0.0
        assert loaded.sum() == 4
        assert report.contacts.slip_speed[loaded].max() <= 1e-9
        assert report.solver.converged
    final = reports[-1].contacts.force.sum(axis=0)
    assert np.abs(final - [0.0, 0.0, weight]).max() <= 1e-4 * weight
    assert max(report.residuals.ncp for report in reports[-50:]) <= 1e-8


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo12'])
def test_slides_down_a_slope_that_is_too_steep(name):
    robot, friction = load_robot(name), 0.3
    sim = Simulator(robot, 'ncp', terrain=InclinedPlane(SLOPE), friction=friction)
    downhill = np.array([np.cos(SLOPE), 0.0, -np.sin(SLOPE)])
    reports = stand(sim, 2000)
    # over the second half, when the legs have settled
    positions = np.array([reports[k].q[:3] @ downhill for k in (999, 1499, 1999)])
    acceleration = (positions[2] - 2 * positions[1] + positions[0]) / 0.5**2
    expected = GRAVITY * (np.sin(SLOPE) - friction * np.cos(SLOPE))
    assert acceleration == pytest.approx(expected, rel=0.01)
    last = reports[-1].contacts
    assert np.all(last.mode == SLIP)
    assert np.linalg.norm(last.force[0]) / last.normal_force[0] == pytest.approx(
        np.hypot(1.0, friction), rel=1e-6
    )


@pytest.mark.parametrize('name', robots())
def test_every_robot_of_the_catalogue_stands(name):
    robot = load_robot(name)
    sim = Simulator(robot)
    height = sim.q[2]
    report = stand(sim, 2000)[-1]
    weight = robot.total_mass * GRAVITY
    assert report.contacts.force[:, 2].sum() == pytest.approx(weight, rel=0.02)
    assert abs(sim.q[2] - height) < 0.15 * height
    assert report.residuals.penetration <= 1e-6


@pytest.mark.parametrize('terrain', ['plane', 'inclined_plane'])
@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize('name', robots())
def test_every_model_carries_every_robot_on_every_terrain(name, model, terrain):
    """The impulses make the momentum, nobody slides away, and every step is solved."""
    robot = load_robot(name)
    sim = Simulator(robot, model, terrain=terrain)
    start, steps = sim.q[:3], 200
    reports = stand(sim, steps)
    data = robot.pinocchio_model.createData()
    pin.centerOfMass(robot.pinocchio_model, data, sim.q, sim.v)
    expected = data.vcom[0] / sim.time + [0.0, 0.0, GRAVITY]
    force = sum(report.contacts.force.sum(axis=0) for report in reports) / steps
    assert force / robot.total_mass == pytest.approx(expected, abs=1e-4 * GRAVITY)
    assert all(report.solver.converged for report in reports)
    assert np.abs(sim.q[:3] - start).max() <= 0.1 * start[2]


def test_redundant_stance_is_solved():
    robot = load_robot('solo8')
    report = stand(Simulator(robot), 5000)[-1]
    assert np.linalg.matrix_rank(report.problem.jacobian, tol=1e-8) == 10
    assert report.solver.converged
    weight = robot.total_mass * GRAVITY
    assert report.contacts.force.sum(axis=0) == pytest.approx([0, 0, weight], abs=1e-4 * weight)
    assert report.residuals.slip <= 1e-9
