"""Presets: the name of an engine stands for a contact model with its parameters, everywhere.

Step by step against MuJoCo and Drake: test_todorov_mujoco.py, test_sap_drake.py; that the presets
are those models is tested here. Against DART and PyBullet: test_settings_of_others.py and
benchmarks/engine_presets.py.
"""

import numpy as np
import pytest
from robots import cube, pose

import contact_sim
from contact_sim import Sap, Simulator, Todorov, UnknownName, contact_models, presets
from contact_sim.compare import compare, scenario_of
from contact_sim.contact_models import CONTACT_MODELS, as_contact_model, model_names
from contact_sim.parameters import declared_parameters
from contact_sim.replay import Recorder, Recording, repeat

GRAVITY, H, FRICTION = 9.81, 1e-3, 0.4
NO_EFFORT = np.zeros(0)


@pytest.mark.parametrize('name', presets())
def test_a_preset_is_a_model_with_parameters_that_it_has(name):
    preset = presets()[name]
    assert preset.name == name
    assert preset.model in contact_models()
    declared = {
        f.name: f.default
        for f in declared_parameters(CONTACT_MODELS[preset.model].parameter_class)
    }
    model = as_contact_model(name)
    assert type(model) is CONTACT_MODELS[preset.model]
    for parameter, default in declared.items():
        assert getattr(model.parameters, parameter) == preset.parameters.get(parameter, default)


def test_names_of_presets_are_no_names_of_models():
    assert not set(presets()) & set(contact_models())
    assert model_names() == (*contact_models(), *presets())


def test_mujoco_and_drake_are_the_models_that_are_compared_with_them_step_by_step():
    assert as_contact_model('mujoco').parameters == Todorov().parameters
    assert as_contact_model('mujoco_elliptic').parameters == Todorov(cone='elliptic').parameters
    assert as_contact_model('drake').parameters == Sap().parameters


def test_an_unknown_preset_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match=r'mujoco_eliptic.*mujoco_elliptic'):
        as_contact_model('mujoco_eliptic')


@pytest.mark.parametrize('name', presets())
def test_a_run_under_a_preset_replays_to_the_bit(name, tmp_path):
    sim, file = Simulator(cube(), name, friction=FRICTION), tmp_path / 'run.npz'
    sim.reset(pose(z=0.11), [0.6, 0.2, 0.0, 0.0, 0.0, 0.0])
    with Recorder(sim, file):
        for _ in range(60):
            sim.step(NO_EFFORT)
    assert repeat(Recording(file)).equal


def sliding_distance(name, degrees):
    """Distance [m] that a cube slides that is launched at 1 m/s, at an angle to the tangents."""
    sim, heading = Simulator(cube(), name, friction=FRICTION), np.radians(degrees)
    for _ in range(50):
        sim.step(NO_EFFORT)
    start = sim.q[:2].copy()
    sim.reset(sim.q, [np.cos(heading), np.sin(heading), 0.0, 0.0, 0.0, 0.0])
    for _ in range(400):
        sim.step(NO_EFFORT)
    return float(np.linalg.norm(sim.q[:2] - start))


CIRCULAR = ('exact', 'bullet', 'raisim', 'chrono', 'drake', 'mujoco_elliptic')
BOXED = ('ode', 'gazebo', 'dart')


@pytest.mark.parametrize('degrees', [0.0, 22.5, 45.0])
@pytest.mark.parametrize('name', [*CIRCULAR, *BOXED])
def test_circular_friction_stops_at_one_distance_and_boxed_friction_axis_by_axis(name, degrees):
    # v²/(2 μ g) along the motion, or along each tangent for itself; half a step of 1 mm is left.
    # raisim takes the slip of least energy of each contact, mujoco yields: they brake 1 % less
    speeds = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    ways = speeds**2 / (2.0 * FRICTION * GRAVITY)
    expected = np.linalg.norm(ways) if name in BOXED else 1.0 / (2.0 * FRICTION * GRAVITY)
    allowed = 2.5e-3 if name in ('raisim', 'mujoco_elliptic') else 6e-4
    assert sliding_distance(name, degrees) == pytest.approx(expected, abs=allowed)


def test_comparisons_name_the_preset():
    robot = contact_sim.load_robot('quadruped')
    runs = compare(robot, scenario_of('stand', 0.05), ['mujoco', 'bullet'])
    assert [run.model for run in runs] == ['mujoco', 'bullet']


def test_an_over_relaxed_sweep_of_boxes_ends_at_the_same_impulses():
    sims = []
    for omega in (0.9, 1.0, 1.3):
        model = contact_sim.Ncp(solver='pgs_box', over_relaxation=omega, max_sweeps=5000)
        sim = Simulator(cube(), model, friction=FRICTION)
        sim.reset(pose(z=0.1), [0.6, 0.2, 0.0, 0.0, 0.0, 0.0])
        for _ in range(100):
            assert sim.step(NO_EFFORT).solver.converged
        sims.append(sim.q)
    assert np.ptp(sims, axis=0).max() < 1e-9
