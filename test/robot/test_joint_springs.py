"""Springs of joints: closed forms in every law, MuJoCo step by step, loading and recordings."""

import warnings

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.constraints import LoopClosure
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName
from contact_sim.maximal import MaximalSimulator
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot import JointSpring, joined

MASS, STIFFNESS, REST, DAMPING = 2.0, 300.0, 0.1, 6.0
MODELS = (
    'null_space', 'compliant', 'hybrid', 'lcp', 'anitescu', 'todorov', 'sap', 'ncp',
)  # fmt: skip


def slider(damping=0.0, spring=f'spring_stiffness="{STIFFNESS}" spring_reference="{REST}"'):
    """Return the URDF of a mass that hangs on a spring and slides up and down."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    return (
        f'<robot name="slider"><link name="rail"/><link name="mass"><inertial><mass value="{MASS}"'
        f'/>{inertia}</inertial></link><joint name="slide" type="prismatic"><parent link="rail"/>'
        '<child link="mass"/><axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" '
        f'velocity="9"/><dynamics damping="{damping}" {spring}/></joint></robot>'
    )


def loaded(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return load_robot(text, floating_base=False, **options)


@pytest.mark.parametrize('model', MODELS)
def test_a_hanging_mass_comes_to_rest_where_the_spring_carries_it(model):
    sim = Simulator(loaded(slider(DAMPING)), model, time_step=2e-3)
    for _ in range(8000):
        sim.step([0.0])
    assert sim.q[0] == pytest.approx(REST - MASS * 9.81 / STIFFNESS, abs=1e-9)


@pytest.mark.parametrize('model', [model for model in MODELS if model != 'hybrid'])
@pytest.mark.parametrize('h', [1e-3, 0.05])
def test_a_step_is_that_of_the_discrete_oscillator(model, h):
    explicit = model == 'todorov'  # as MuJoCo
    sim = Simulator(loaded(slider(DAMPING)), model, time_step=h, gravity=0.0)
    x, v = 0.4, -1.0
    sim.reset([x], [v])
    for _ in range(20):
        report = sim.step([1.5])
        inertia = MASS + h * DAMPING + (0.0 if explicit else h * h * STIFFNESS)
        v += (
            h
            / inertia
            * (1.5 - DAMPING * v - STIFFNESS * (x + (0.0 if explicit else h * v) - REST))
        )
        x += h * v
        assert report.v[0] == pytest.approx(v, rel=1e-10, abs=1e-12)
        assert sim.q[0] == pytest.approx(x, rel=1e-10, abs=1e-12)


def test_the_event_driven_law_follows_the_cosine():
    sim = Simulator(loaded(slider()), 'hybrid', time_step=1e-3, gravity=0.0)
    sim.reset([REST + 0.2], [0.0])
    for _ in range(1000):
        sim.step([0.0])
    omega = np.sqrt(STIFFNESS / MASS)
    assert sim.q[0] == pytest.approx(REST + 0.2 * np.cos(omega), abs=1e-8)
    assert sim.v[0] == pytest.approx(-0.2 * omega * np.sin(omega), abs=1e-7)


def test_the_energy_of_springs_is_in_the_balance():
    h = 1e-3
    sim = Simulator(loaded(slider()), 'ncp', time_step=h, gravity=0.0)
    sim.reset([0.5], [0.3])
    for _ in range(50):
        v = sim.v[0]
        before = 0.5 * MASS * v**2 + sim.robot.spring_energy(sim.q)
        report = sim.step([0.0])
        after = 0.5 * MASS * sim.v[0] ** 2 + sim.robot.spring_energy(sim.q)
        balance = report.residuals.energy_balance
        assert balance.change == pytest.approx(after - before, abs=1e-12)
        # what implicit Euler takes out of an oscillator
        lost = 0.5 * MASS * (sim.v[0] - v) ** 2 + 0.5 * STIFFNESS * (h * sim.v[0]) ** 2
        assert balance.integration == pytest.approx(-lost, rel=1e-9)


def arm(stiffness, reference):
    """Return the MJCF of two links on a floor whose knee is sprung."""
    return (
        '<mujoco><compiler angle="radian"/><option timestep="0.002" tolerance="0" iterations="50" '
        'ls_iterations="50" ls_tolerance="1e-14"/><worldbody><geom name="floor" type="plane" '
        'size="0 0 1" friction="0.8"/><body name="hip" pos="0 0 0.42"><joint name="up" '
        'type="slide" axis="0 0 1"/><geom size="0.05" mass="3" contype="0" conaffinity="0"/>'
        '<body name="thigh"><joint name="hip" axis="0 1 0" damping="0.3"/><geom type="capsule" '
        'size="0.02" fromto="0 0 0 0 0 -0.2" mass="0.5" contype="0" conaffinity="0"/><body '
        f'name="shank" pos="0 0 -0.2"><joint name="knee" axis="0 1 0" stiffness="{stiffness}" '
        f'springref="{reference}" damping="0.1"/><geom type="capsule" size="0.01" '
        'fromto="0 0 0 0 0 -0.2" mass="0.2" contype="0" conaffinity="0"/><geom name="foot" '
        'size="0.02" pos="0 0 -0.2" mass="0.05" friction="0.8"/></body></body></body></worldbody>'
        '<actuator><motor joint="hip"/></actuator></mujoco>'
    )


def test_a_leg_on_its_spring_moves_as_in_mujoco():
    mujoco = pytest.importorskip('mujoco', reason='MuJoCo reads MJCF')
    text = arm(40.0, -0.6)
    robot = loaded(text, feet=['foot'], body_contacts=False)
    assert robot.springs == (JointSpring('knee', 40.0, -0.6),)
    model = mujoco.MjModel.from_xml_string(text)
    data, sim = mujoco.MjData(model), Simulator(robot, 'todorov', friction=0.8, time_step=2e-3)
    loaded_steps = 0
    for _ in range(300):
        sim.reset(data.qpos, data.qvel)
        sim.step([0.0])
        mujoco.mj_step(model, data)
        assert np.abs(sim.v - data.qvel).max() <= 1e-8 * max(1.0, np.abs(data.qvel).max())
        loaded_steps += data.ncon > 0
    assert loaded_steps > 100


def test_sdf_states_springs():
    axis = (
        '<axis><xyz>0 1 0</xyz><dynamics><spring_stiffness>70</spring_stiffness>'
        '<spring_reference>0.3</spring_reference></dynamics></axis>'
    )
    link = '<link name="{}"><pose>0 0 {} 0 0 0</pose></link>'
    robot = loaded(
        f'<sdf version="1.9"><model name="m">{link.format("a", 0)}{link.format("b", 1)}<joint '
        f'name="hinge" type="revolute"><parent>a</parent><child>b</child>{axis}</joint></model>'
        '</sdf>'
    )
    assert robot.springs == (JointSpring('hinge', 70.0, 0.3),)
    assert robot.spring_effort([0.5]).tolist() == pytest.approx([-14.0])


def test_springs_that_cannot_be_used_are_refused():
    robot = loaded(slider())
    with pytest.raises(InvalidInput, match=r'stiffness = -1.*>= 0'):
        JointSpring('slide', -1.0)
    with pytest.raises(InvalidInput, match='rest = nan'):
        JointSpring('slide', 1.0, float('nan'))
    with pytest.raises(UnknownName, match='joint of a spring'):
        robot.with_springs([JointSpring('slid', 1.0)])
    with pytest.raises(InvalidInput, match='slide'):
        robot.with_springs([JointSpring('slide', 1.0)] * 2)
    with pytest.raises(RobotDescriptionError, match=r'spring_stiffness.*-3'):
        loaded(slider(spring='spring_stiffness="-3"'))
    wheel = loaded(
        slider(spring='').replace('prismatic', 'continuous').replace('lower="-9" upper="9" ', '')
    )
    with pytest.raises(InvalidInput, match='make it revolute'):
        wheel.with_springs([JointSpring('slide', 1.0)])
    with pytest.raises(InvalidInput, match='with_springs'):
        MaximalSimulator(robot)


def test_springs_of_joined_robots_and_of_a_recording(tmp_path):
    robot = loaded(slider(spring='')).with_springs([JointSpring('slide', STIFFNESS, REST)])
    both = joined({'a': robot, 'b': loaded(slider(spring=''))}, {'b': (1.0, 0.0)})
    assert both.springs == (JointSpring('a/slide', STIFFNESS, REST),)
    sim = Simulator(both, 'ncp')
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(50):
            sim.step(np.zeros(2))
    assert sim.q[0] != sim.q[1]
    assert repeat(Recording(tmp_path / 'run.npz')).equal


def five_bars(driven):
    """Return base, a, b and c with three joints in a row whose end is tied to the base."""
    link = (
        '<link name="{}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/><inertia ixx="0.1" '
        'iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    turn = (
        '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><origin '
        'xyz="{} 0 0"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/>'
        '</joint>'
    )
    text = ''.join(map(link.format, ('base', 'a', 'b', 'c', 'd')))
    for k, (name, *where) in enumerate(
        [('one', 'base', 'a'), ('two', 'a', 'b'), ('three', 'b', 'c'), ('four', 'c', 'd')]
    ):
        text += turn.format(name, *where, min(k, 1))
    robot = loaded(f'<robot name="five">{text}</robot>', actuated_joints=driven)
    robot = robot.with_position_limits(())
    return robot.with_constraints(
        [LoopClosure('d', 'base', (1.0, 0.0, 0.0), (1.5, 0.0, 0.3))]
    )  # fmt: skip


def test_what_loops_leave_free_of_the_driven_joints():
    robot = five_bars(['one'])  # four joints, two equations in the plane
    q, driven = robot.reference_configuration(), robot.joint_velocity_index
    rows = robot.loops.jacobian(q)
    free = robot.loops.free_motions(q, driven)
    assert free.shape == (4, 1)
    assert abs(rows @ free).max() <= 1e-12
    assert abs(free[0]).max() == 0.0
    # a spring that is taken as rigid leaves nothing free
    assert robot.loops.free_motions(q, driven, [2]).shape == (4, 0)
    motion, _ = robot.loops.motion(rows, driven, held=[2])
    assert abs(rows @ motion).max() <= 1e-12
    assert motion[[0, 2]].ravel().tolist() == [1.0, 0.0]
    # three driven joints are not free
    robot = five_bars(['one', 'two', 'three'])
    assert robot.loops.free_motions(q, robot.joint_velocity_index) is None
