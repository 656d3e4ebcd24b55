"""What `print` says of an object: one line that says what it is."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import contact_sim
from contact_sim.arrays._views import StepData
from contact_sim.collision._terrain import as_terrain
from contact_sim.constraints import PointAnchor
from contact_sim.contact_models import as_contact_model
from contact_sim.control import Stance, Trot
from contact_sim.errors import LONGEST_SUMMARY
from contact_sim.replay import Recorder, Recording
from contact_sim.robot import holding
from contact_sim.sensors import DelayedSensor, Encoders
from contact_sim.terrain import HeightField, TerrainGenerator
from contact_sim.testing import Trial

LONGEST = 2 * LONGEST_SUMMARY
"""Characters; parameters of a model are listed whole."""
ROOMS = [
    'contact_sim',
    *(f'contact_sim.{info.name}' for info in pkgutil.iter_modules(contact_sim.__path__)
      if info.ispkg and not info.name.startswith('_')),
]  # fmt: skip


def public_classes():
    """Return the classes that rooms list, but for exceptions and interfaces."""
    found = set()
    for room in ROOMS:
        try:
            module = importlib.import_module(room)
        except ModuleNotFoundError as error:
            if str(error.name).startswith('contact_sim'):
                raise
            continue
        for name in getattr(module, '__all__', ()):
            value = getattr(module, name)
            own = inspect.isclass(value) and value.__module__.startswith('contact_sim')
            if own and not issubclass(value, BaseException):
                found.add(value)
    return sorted(found, key=lambda cls: (cls.__module__, cls.__name__))


def is_interface(cls):
    return getattr(cls, '_is_protocol', False)


@pytest.mark.parametrize(
    'cls', [cls for cls in public_classes() if not (is_interface(cls) or inspect.isabstract(cls))],
    ids=lambda cls: f'{cls.__module__}.{cls.__name__}',
)  # fmt: skip
def test_every_public_class_says_what_it_is(cls):
    """No address, and no arrays that fill the screen: dataclasses of arrays have `one_line`."""
    assert cls.__repr__ is not object.__repr__
    generated = hasattr(cls.__repr__, '__wrapped__')  # by dataclass
    arrays = [
        name for name, hint in getattr(cls, '__annotations__', {}).items()
        if generated and ('Array' in str(hint) or 'Indices' in str(hint)) and name[0] != '_'
    ]  # fmt: skip
    assert arrays == []


@pytest.fixture(scope='module')
def objects(tmp_path_factory):
    """Return objects of many classes, as a user has them."""
    robot = contact_sim.load_robot('go1')
    anchor = PointAnchor(frame='trunk')
    sim = contact_sim.Simulator(robot, constraints=[anchor])
    stand = holding(robot.joint_positions(sim.q), *robot.default_gains)
    run = sim.run(stand, 0.01)
    report = sim.last_report
    worlds = contact_sim.Worlds(robot, 2)
    rollout = worlds.follow(stand, steps=2)
    folder = tmp_path_factory.mktemp('recordings')
    with Recorder(sim, folder / 'run.npz') as recorder:
        sim.follow(stand, steps=2)
    ground = TerrainGenerator(size=(4.0, 4.0), sub_terrains={'plane': {}})
    trial = Trial(contact_sim.Simulator(robot), Stance(robot), folder / 'trial.npz')
    problem = report.problem
    return [
        robot, robot.actuators, robot.contact_points[0], robot.feet[0], robot.collisions,
        robot.collisions.solids[0], robot.position_limits[0], robot.loops, stand, anchor,
        contact_sim.joined({'a': robot, 'b': robot}, {'b': (2.0, 0.0)}),
        *map(as_contact_model, contact_sim.contact_models()),
        *contact_sim.presets().values(), contact_sim.Sap(stiffness=1e5).parameters,
        sim, sim.snapshot(), sim.terrain, sim.sizes, run, report, report.contacts, report.feet,
        report.links, report.pairs, report.constraints, report.constraints[anchor.name],
        report.record, report.residuals, report.solver, problem, contact_sim.Ncp().solve(problem),
        worlds, rollout, worlds.report(0), recorder, Recording(folder / 'run.npz'),
        ground, ground.generate(), HeightField(np.zeros((40, 40)), 0.1),
        *map(as_terrain, ('plane', 'groove', 'sphere', 'cylinder', 'stairs')),
        contact_sim.analyse_support(robot, sim.q, [0, 1]), Stance(robot), Trot(robot), trial,
        Encoders(robot), DelayedSensor(Encoders(robot)), StepData(sim.sizes),
    ]  # fmt: skip


def test_an_object_is_one_line_with_its_class_and_no_address(objects):
    for value in objects:
        assert repr(value).startswith(tuple(cls.__name__ for cls in type(value).__mro__[:2]))
        for text in (repr(value), str(value)):
            assert '\n' not in text, text
            assert ' at 0x' not in text, text
            assert len(text) <= LONGEST, (len(text), text)


def test_a_simulation_and_a_report_say_how_it_stands():
    robot = contact_sim.load_robot('go1')
    sim = contact_sim.Simulator(robot)
    stand = holding(robot.joint_positions(sim.q), *robot.default_gains)
    report = sim.follow(stand, steps=50)
    for part in ("'go1'", 'Plane', 'ncp', 't = 0.05 s', 'h = 0.001 s', '4 contacts loaded'):
        assert part in str(sim)
    weight = f'{report.contacts.normal_force.sum():.4g} N'
    for part in ('t = 0.05 s', 'converged', 'FL_foot, FR_foot, RL_foot, RR_foot', weight):
        assert part in str(report)
    sim.reset(height=0.1)
    assert 'contacts none' in str(sim.last_report)
