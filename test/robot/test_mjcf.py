"""MJCF: every feature against MuJoCo itself, notes, errors, mutated files, and whole steps."""

import os
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.constraints import JointCoupling, LoopClosure
from contact_sim.errors import RobotDescriptionError, UnknownName

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))
mujoco = pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `mjcf`)')
from mjcf_robots import differences, mutated, outcome  # noqa: E402
from mjcf_steps import FRICTION, TIME_STEP, at_defaults, compared  # noqa: E402

TOLERANCE = 1e-9


def loaded(text, **options):
    """Return the robot of an MJCF text, without the warning that no feet are known."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return load_robot(text, **options)


def arm(inside='', attributes='', top='', joint='<joint name="j" axis="0 1 0"/>'):
    """Return an MJCF of a link on a joint, fixed to the world."""
    return (
        f'<mujoco model="arm">{top}<worldbody><body name="link" pos="0.1 0.2 0.3" {attributes}>'
        f'{joint}<geom name="rod" type="capsule" fromto="0 0 0 0.1 0.2 0.4" size="0.03"/>{inside}'
        '</body></worldbody></mujoco>'
    )


def floating(inside='', top='', bottom=''):
    """Return an MJCF of a box that floats."""
    return (
        f'<mujoco>{top}<worldbody><body name="box" pos="0 0 1"><freejoint name="free"/>'
        f'<geom name="hull" type="box" size="0.2 0.1 0.05"/>{inside}</body></worldbody>{bottom}'
        '</mujoco>'
    )


LEG = (
    '<body name="thigh" pos="0.1 0 0" euler="0 20 30"><joint name="hip" axis="0 1 0" {}/>'
    '<geom name="thigh" type="capsule" size="0.03 0.1" pos="0 0 -0.1"/>'
    '<body name="shank" pos="0 0 -0.2"><joint name="knee" axis="0 1 0"/>'
    '<geom name="shank" type="capsule" size="0.02 0.1" pos="0 0 -0.1"/>'
    '<geom name="ball" size="0.03" pos="0 0 -0.2"/><site name="tip" pos="0 0 -0.2"/></body></body>'
)
FEATURES = {
    'classes and degrees': floating(LEG.format('class="stiff" range="-30 60"'), top=(
        '<default><joint damping="0.5"/><default class="stiff"><joint armature="0.02" '
        'frictionloss="0.3"/></default></default>')),
    'radians and euler sequence': floating(LEG.format('range="-0.5 1"'),
        top='<compiler angle="radian" eulerseq="ZYX"/>'),
    'joint beside the origin': arm(joint='<joint name="j" pos="0.1 -0.2 0.3" axis="1 2 3"/>'),
    'several joints': arm(joint=(
        '<joint name="a" type="slide" axis="1 1 0"/><joint name="b" axis="0 1 1" pos="0.1 0 0"/>'
        '<joint name="c" axis="1 0 0" pos="0.1 0.2 0"/>')),
    'ball joint': arm(joint='<joint name="j" type="ball" armature="0.01" damping="0.2"/>'),
    'free and ball': floating(LEG.format('').replace(
        '<joint name="knee" axis="0 1 0"/>', '<joint name="knee" type="ball" pos="0 0 0.01"/>')),
    'ref': arm(joint='<joint name="j" axis="1 2 0" ref="40" range="10 90"/>'
               '<joint name="k" type="slide" axis="0 0 1" ref="0.3"/>'),
    'no names': arm().replace('name="link"', '').replace('name="j"', ''),
    'frames and replicate': floating(
        '<frame pos="0 0 0.1" euler="10 20 30"><replicate count="3" euler="0 0 40" sep="-">'
        '<body name="arm" pos="0.2 0 0"><joint name="turn"/><geom size="0.02" pos="0.1 0 0"/>'
        '</body></replicate></frame>'),
    'full inertia': arm('<inertial pos="0.1 0 0" mass="2" fullinertia="3 2 2.5 0.1 0.2 -0.3"/>'),
    'gimbal lock': arm(attributes='euler="10 90 20"'),
    'geoms of a mesh': arm('<geom type="mesh" mesh="tetra" euler="10 20 30" pos="0 0 0.2"/>', top=(
        '<asset><mesh name="tetra" vertex="0 0 0  0.1 0 0  0 0.2 0  0 0 0.3"/></asset>')),
    'balanced inertia': arm(
        '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.2 0.9"/>',
        top='<compiler balanceinertia="true" settotalmass="3"/>'),
    'bodies without joints': floating('<body name="head" pos="0 0 0.3" euler="0 90 0"><geom '
                                      'size="0.1"/><site name="eye" pos="0.1 0 0"/></body>'),
}  # fmt: skip


@pytest.mark.parametrize('text', FEATURES.values(), ids=FEATURES)
def test_the_robot_is_what_mujoco_compiles(text):
    robot = loaded(text, check_meshes=False)
    found = differences(robot, mujoco.MjModel.from_xml_string(text))
    assert max(found.values()) <= TOLERANCE, found


@pytest.mark.parametrize('text', FEATURES.values(), ids=FEATURES)
def test_its_description_is_the_same_robot(text):
    """Recordings, viewers and RViz have the text only."""
    robot = loaded(text, check_meshes=False)
    again = loaded(
        robot.description, floating_base=robot.floating_base, check_meshes=False,
        actuated_joints=robot.joint_names,
    )  # fmt: skip
    ours, theirs = robot.pinocchio_model, again.pinocchio_model
    assert ours.saveToString() == theirs.saveToString()


def test_limits_of_effort_and_gains_are_those_of_actuators():
    hinges = ''.join(
        f'<body pos="{k} 0 0"><joint name="{name}" range="-1 1" {extra}/><geom size="0.1"/></body>'
        for k, (name, extra) in enumerate([
            ('motor', ''), ('servo', ''), ('both', ''), ('capped', 'actuatorfrcrange="-4 4"'),
            ('passive', ''), ('uneven', ''),
        ])
    )  # fmt: skip
    robot = loaded(
        f'<mujoco><worldbody>{hinges}</worldbody><actuator>'
        '<motor joint="motor" ctrlrange="-2 2" gear="10"/>'
        '<position joint="servo" kp="30" kv="2" forcerange="-5 5" gear="2"/>'
        '<position joint="both" kp="40" ctrlrange="-1 1"/><velocity joint="both" kv="3"/>'
        '<motor joint="capped" ctrlrange="-1 1" gear="-50"/>'
        '<general joint="uneven" gainprm="3" ctrlrange="-1 2"/></actuator></mujoco>'
    )
    names = ('both', 'capped', 'motor', 'servo', 'uneven')
    assert robot.joint_names == names
    assert robot.passive_joint_names == ('passive',)
    effort = dict(zip(names, robot.effort_limit, strict=True))
    assert effort.pop('both') > 1e300
    assert effort == {'capped': 4.0, 'motor': 20.0, 'servo': 10.0, 'uneven': 6.0}
    assert robot.described_gains == {'both': (40.0, 3.0), 'servo': (120.0, 8.0)}
    ratios = dict(zip(names, robot.actuators.gear_ratio, strict=True))
    assert ratios == {'both': 1.0, 'capped': 50.0, 'motor': 10.0, 'servo': 2.0, 'uneven': 1.0}
    assert 'several actuators are one: their limits and gains are added: joint both' in robot.notes
    assert (
        'of different limits of effort in both directions the larger one holds in both: '
        'joint uneven' in robot.notes
    )


def test_a_keyframe_is_a_pose_and_home_is_standing():
    text = floating(LEG.format('range="-50 50"'), bottom=(
        '<keyframe><key name="home" qpos="1 2 3 0 1 0 0 0.4 -0.7"/>'
        '<key name="low" qpos="0 0 1 1 0 0 0 2 0"/></keyframe>'))  # fmt: skip
    robot = loaded(text, feet=['tip'])
    assert set(robot.reference_configurations) == {'home', 'low', 'standing'}
    q = robot.references['standing']
    assert q.tolist() == robot.references['home'].tolist()
    assert q.tolist() == [1, 2, 3, 1, 0, 0, 0, 0.4, -0.7]
    assert robot.references['low'][7] == pytest.approx(np.radians(50))
    assert "keyframe 'low' is moved into the range: joint hip" in robot.notes
    assert "pose 'standing' is keyframe 'home'" in robot.notes


@pytest.mark.parametrize('foot', ['ball', 'tip', 'shank'])
def test_feet_are_named_by_geom_site_or_body(foot):
    robot = loaded(floating(LEG.format('')), feet=[foot])
    assert [(point.frame, point.radius) for point in robot.contact_points] == [('ball', 0.03)]
    model = mujoco.MjModel.from_xml_string(floating(LEG.format('')))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = robot.pinocchio_model
    place, q = own.createData(), pin.neutral(own)
    q[2] = 1.0
    pin.forwardKinematics(own, place, q)
    at = place.oMi[own.getJointId('knee')].act(robot.contact_points[0].offset)
    assert at == pytest.approx(data.geom('ball').xpos, abs=1e-12)


def test_capsules_are_capsules_and_cylinders_for_other_readers():
    robot = loaded(floating(LEG.format('')))
    shapes = {solid.frame: solid for solid in robot.solids}
    assert shapes['shank'].kind == 1  # a capsule
    assert (shapes['shank'].half, shapes['shank'].radius) == ((0.0, 0.0, 0.1), 0.02)
    assert '<capsule' not in robot.description


def test_what_is_called_a_foot_is_one():
    robot = load_robot(floating(LEG.format('').replace('"tip"', '"right_foot"')))
    assert [foot.frame for foot in robot.feet] == ['ball']
    with pytest.warns(UserWarning, match='no feet are known'):
        assert not load_robot(floating(LEG.format(''))).feet


def test_equality_constraints_are_loops_and_couplings():
    rods = ''.join(
        f'<body name="{name}" pos="{x} 0 0"><joint name="{name}" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02"/></body>'
        for x, name in enumerate('abcd')
    )  # fmt: skip
    text = (
        f'<mujoco><worldbody>{rods}</worldbody><equality>'
        '<connect name="pin" body1="a" body2="b" anchor="0.5 0 0.5"/>'
        '<joint name="gear" joint1="c" joint2="d" polycoef="0 -2 0 0 0"/>'
        '<connect name="off" body1="a" body2="c" anchor="0 0 1" active="false"/>'
        '</equality></mujoco>'
    )
    robot = loaded(text)
    loop, gear = sorted(robot.constraints, key=lambda one: isinstance(one, JointCoupling))
    assert isinstance(loop, LoopClosure)
    assert (loop.frame, loop.other) == ('a', 'b')
    assert np.array(loop.point) == pytest.approx([0.5, 0, 0.5])
    assert np.array(loop.other_point) == pytest.approx([-0.5, 0, 0.5])
    assert (gear.joint, gear.leader, gear.ratio, gear.offset) == ('c', 'd', -2.0, 0.0)
    notes = '\n'.join(robot.notes)
    assert 'equality constraints that are not active are left out: equality off' in notes
    assert 'MuJoCo makes them soft: equality pin, gear' in notes


def test_a_weld_holds_the_placement_that_mujoco_holds():
    text = (
        '<mujoco><worldbody><body name="a" euler="10 20 30"><joint/><geom size="0.1"/></body>'
        '<body name="b" pos="1 2 3" euler="40 50 60"><joint type="ball"/><geom size="0.1"/></body>'
        '</worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>'
    )
    robot = loaded(text)
    assert len(robot.constraints) == 3
    assert np.abs(robot.loops.error(pin.neutral(robot.pinocchio_model))).max() <= 1e-12


LEFT_OUT = {
    'stiffness of a ball joint is left out: joint j':
        arm(joint='<joint name="j" type="ball" stiffness="3"/>'),
    'stiffness of a free joint is left out: joint free':
        floating().replace('<freejoint name="free"/>',
                           '<joint name="free" type="free" stiffness="1"/>'),
    'tendons are left out: tendon t':
        arm().replace('</worldbody>', '</worldbody><tendon><fixed name="t"><joint joint="j" '
                      'coef="1"/></fixed></tendon>'),
    'actuators of something else than a joint with one degree of freedom are left out: actuator m':
        arm('<site name="s"/>').replace('</worldbody>', '</worldbody><actuator><motor name="m" '
                                        'site="s"/></actuator>'),
    'damping of a free joint is left out: joint free':
        floating().replace('<freejoint name="free"/>',
                           '<joint name="free" type="free" damping="1"/>'),
    'gravcomp is left out: gravity acts on the whole robot: body link':
        arm(attributes='gravcomp="1"'),
    'friction = 0.7 is a number of the simulation, not of the robot: geom link/geom_1':
        arm('<geom size="0.1" friction="0.7"/>'),
    'condim is left out: geom link/geom_1': arm('<geom size="0.1" condim="6"/>'),
    'solref is a number of the contact model (Todorov), not of the robot: geom link/geom_1':
        arm('<geom size="0.1" solref="0.01 1"/>'),
    'a geom of type ellipsoid touches nothing: geom link/geom_1':
        arm('<geom type="ellipsoid" size="0.1 0.2 0.3"/>'),
    'sensors are left out: sensor s':
        arm().replace('</worldbody>', '</worldbody><sensor><jointpos name="s" joint="j"/>'
                      '</sensor>'),
    '<option> is of the simulation, not of the robot: gravity = 0 0 -1.6, density = 1.2':
        arm(top='<option density="1.2" gravity="0 0 -1.6"/>'),
    'geoms of the world are not of the robot; give the simulation its ground: geom floor':
        arm().replace('<worldbody>', '<worldbody><geom name="floor" type="plane" '
                      'size="1 1 1"/>'),
    'bodies that stand in the world are not of the robot: body table':
        arm().replace('<worldbody>', '<worldbody><body name="table"><geom size="1"/></body>'),
    'bodies that move apart from the robot are not of it: body ball':
        floating(LEG.format('')).replace('<worldbody>', '<worldbody><body name="ball"><freejoint/>'
            '<geom size="1"/></body>').replace('</worldbody>', '</worldbody><actuator><motor '
            'joint="hip"/></actuator>'),
    'links touch each other only with with_self_collision; exclusions are left out: exclude e':
        floating(LEG.format(''), bottom='<contact><exclude name="e" body1="box" body2="thigh"/>'
                 '</contact>'),
    'geoms that can touch other geoms of the robot only have no collision geometry: geom '
    'link/geom_1': arm('<geom size="0.1" contype="2" conaffinity="2"/>'),
    'no <actuator>: every joint with one degree of freedom is driven': arm(),
}  # fmt: skip


@pytest.mark.parametrize(('note', 'text'), LEFT_OUT.items(), ids=range(len(LEFT_OUT)))
def test_what_is_left_out_is_noted_by_name(note, text):
    assert note in loaded(text).notes


REFUSED = {
    'two joints move independently': (
        floating().replace('<worldbody>', '<worldbody><body name="two"><freejoint/><geom '
                           'size="1"/></body>'),
        "bodies two, box move independently of each other and 'two' floats"),
    'nothing moves': ('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', 'nothing moves'),
    'an error of MuJoCo': (arm('<geom size="0"/>'), 'MJCF text: MuJoCo: '),
    'no MJCF': ('<mujoco><bad/></mujoco>', "MuJoCo: .*unrecognized element"),
    'a mesh of a text': (
        arm('<geom type="mesh" mesh="m"/>',
            top='<asset><mesh name="m" file="m.stl"/></asset>'),
        "mesh 'm': file 'm.stl': text has no folder where it could be; give load_robot the path"),
    'too many': (
        arm('<replicate count="10000"><replicate count="10000"><site/></replicate></replicate>'),
        'elements after repetition'),
    'memory of its simulation': (
        arm(top='<size nuserdata="2000000000"/>'), 'Could not allocate memory'),
    'a large height field': (
        arm(top='<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'),
        'elements after repetition'),
    'a large texture': (
        arm(top='<asset><texture name="t" type="2d" builtin="flat" width="1000000" '
            'height="1000000"/></asset>'), 'pixels'),
}  # fmt: skip


@pytest.mark.parametrize(('text', 'message'), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(RobotDescriptionError, match=message):
        loaded(text)


def test_files_include_each_other_and_meshes_lie_beside_them(tmp_path, monkeypatch):
    (tmp_path / 'part.xml').write_text('<mujoco><compiler meshdir="assets"/></mujoco>')
    (tmp_path / 'assets').mkdir()
    corners = ['0 0 0', '0.1 0 0', '0 0.2 0', '0 0 0.3']
    faces = ('1 3 2', '1 2 4', '1 4 3', '2 3 4')
    (tmp_path / 'assets/tetra.obj').write_text(
        '\n'.join([f'v {corner}' for corner in corners] + [f'f {face}' for face in faces])
    )
    file = tmp_path / 'arm.xml'
    file.write_text(
        arm('<geom type="mesh" mesh="tetra" euler="10 20 30" pos="0 0 0.2"/>', top=(
            '<include file="part.xml"/><asset><mesh file="tetra.obj" scale="1 2 -3" '
            'refpos="0.1 0.2 0.3"/></asset>'))
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    robot = loaded(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    assert max(differences(robot, model).values()) <= TOLERANCE
    assert not list(tmp_path.glob('MUJOCO_LOG.TXT'))
    # the mesh is where MuJoCo has it
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = model.mesh_vert @ data.geom_xmat[1].reshape(3, 3).T + data.geom_xpos[1]
    solid = next(one for one in robot.solids if one.corners)
    joint = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, joint, np.zeros(1))
    placed = joint.oMi[1] * solid.placement
    ours = [placed.act(np.array(corner)) for corner in solid.corners]
    for corner in theirs:
        assert min(np.linalg.norm(corner - one) for one in ours) <= 1e-7  # MuJoCo: single floats
    # without the file the robot is loaded only where no mass depends on it
    (tmp_path / 'assets/tetra.obj').unlink()
    with pytest.raises(RobotDescriptionError, match=r'no file .*tetra\.obj; where check_meshes'):
        loaded(file)
    with pytest.raises(
        RobotDescriptionError, match=r"'tetra' is not .* and the inertia of body 'link'"
    ):
        loaded(file, check_meshes=False)
    file.write_text(
        file.read_text().replace('<joint name="j"', '<inertial pos="0 0 0" mass="1" '
                                 'diaginertia="1 1 1"/><joint name="j"')
    )  # fmt: skip
    robot = loaded(file, check_meshes=False)
    assert 'meshes that are not on this machine are left out: mesh tetra' in robot.notes


def test_files_that_wait_or_include_themselves_are_refused(tmp_path):
    os.mkfifo(tmp_path / 'pipe.xml')
    os.mkfifo(tmp_path / 'pipe.stl')
    file = tmp_path / 'robot.xml'
    file.write_text('<mujoco><include file="pipe.xml"/></mujoco>')
    with pytest.raises(RobotDescriptionError, match='it is a FIFO'):
        loaded(file)
    file.write_text(arm('<geom type="mesh" mesh="m"/>', top=(
        '<asset><mesh name="m" file="pipe.stl"/></asset>')))  # fmt: skip
    with pytest.raises(RobotDescriptionError, match=r"mesh 'm': .*it is a FIFO"):
        loaded(file)
    file.write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(RobotDescriptionError, match='already included'):
        loaded(file)


def test_a_mesh_that_only_draws_is_where_mujoco_has_it(tmp_path):
    """It is not compiled, for that takes time and memory; its place is computed."""
    corners = ['0 0 0', '0.1 0 0', '0 0.2 0', '0 0 0.3']
    faces = ('1 3 2', '1 2 4', '1 4 3', '2 3 4')
    (tmp_path / 'tetra.obj').write_text(
        '\n'.join([f'v {corner}' for corner in corners] + [f'f {face}' for face in faces])
    )
    file = tmp_path / 'arm.xml'
    file.write_text(arm(
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="tetra" '
        'contype="0" conaffinity="0" euler="10 20 30" pos="0 0 0.2"/>',
        top='<asset><mesh file="tetra.obj" scale="1 2 -3" refpos="0.1 0.2 0.3"/></asset>',
    ))  # fmt: skip
    robot = loaded(file)
    link = ElementTree.fromstring(robot.description).find("link[@name='link']")
    drawn = next(one for one in link.iterfind('visual') if one.find('geometry/mesh') is not None)
    mesh, origin = drawn.find('geometry/mesh'), drawn.find('origin')
    xyz, rpy = ([float(x) for x in origin.get(key).split()] for key in ('xyz', 'rpy'))
    place = pin.SE3(pin.rpy.rpyToMatrix(np.array(rpy)), np.array(xyz))
    scale = np.array([float(x) for x in mesh.get('scale').split()])
    vertices = np.array([[float(x) for x in corner.split()] for corner in corners])
    ours = [place.act(scale * vertex) for vertex in vertices]
    model = mujoco.MjModel.from_xml_path(str(file))
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[1])
    for corner in model.mesh_vert @ turn.reshape(3, 3).T + model.geom_pos[1]:
        assert min(np.linalg.norm(corner - one) for one in ours) <= 1e-7
    assert mesh.get('filename') == 'tetra.obj'


def test_a_robot_without_mujoco_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(RobotDescriptionError, match=r'pip install "contact_sim\[mjcf\]"'):
        load_robot(arm())


def test_mutated_files_load_to_what_mujoco_makes_of_them_or_are_refused():
    texts = list(FEATURES.values())
    counts = {'loaded, equal': 0, 'refused by MuJoCo': 0, 'refused here': 0}
    for k in range(200):
        text = mutated(texts[k % len(texts)], np.random.default_rng(k))
        found = outcome(text)
        assert not found.startswith('!'), (k, found, text)
        counts[found] += 1
    assert counts['loaded, equal'] > 50
    assert counts['refused by MuJoCo'] > 20


# ------------------------------------------------------------------- todorov, step by step

STEPS = 300


def quadruped():
    """Return the MJCF of a quadruped on a floor, with MuJoCo's contacts solved to the end."""
    legs = ''
    for name, x, y in (('FL', 1, 1), ('FR', 1, -1), ('HL', -1, 1), ('HR', -1, -1)):
        legs += (
            f'<body name="{name}_hip" pos="{0.19 * x} {0.05 * y} 0"><joint '
            f'name="{name}_abduction" class="hip"/><geom class="link" size="0.045" mass="0.6"/>'
            f'<body name="{name}_thigh" pos="0 {0.08 * y} 0"><joint name="{name}_pitch" '
            'class="pitch"/><geom class="link" type="capsule" fromto="0 0 0 0 0 -0.21" '
            f'size="0.02" mass="0.9"/><body name="{name}_shank" pos="0 0 -0.21"><joint '
            f'name="{name}_knee" class="knee"/><geom class="link" type="capsule" '
            'fromto="0 0 0 0 0 -0.21" size="0.015" mass="0.15"/>'
            f'<geom name="{name}_foot" class="foot" pos="0 0 -0.21"/>'
            '</body></body></body>'
        )
    motors = ''.join(
        f'<motor joint="{leg}_{joint}" ctrlrange="-40 40"/>'
        for leg in ('FL', 'FR', 'HL', 'HR') for joint in ('abduction', 'pitch', 'knee')
    )  # fmt: skip
    bent = '0 0.8 -1.6 ' * 4
    return (
        '<mujoco model="dog"><compiler angle="radian"/>'
        f'<option timestep="{TIME_STEP}" tolerance="0" iterations="50" ls_iterations="50" '
        'ls_tolerance="1e-14"/><default><joint damping="0.02" armature="0.01" frictionloss="0.1"/>'
        '<default class="hip"><joint axis="1 0 0" range="-0.9 0.9"/></default>'
        '<default class="pitch"><joint axis="0 1 0" range="-0.7 4"/></default>'
        '<default class="knee"><joint axis="0 1 0" range="-2.8 -0.9"/></default>'
        '<default class="link"><geom contype="0" conaffinity="0"/></default>'
        f'<default class="foot"><geom size="0.02" mass="0.06" friction="{FRICTION}"/></default>'
        '</default><worldbody><geom name="floor" type="plane" size="0 0 1" '
        f'friction="{FRICTION}"/><body name="trunk" pos="0 0 0.3"><freejoint/><geom class="link" '
        f'type="box" size="0.19 0.05 0.06" mass="5"/>{legs}</body></worldbody><actuator>{motors}'
        f'</actuator><keyframe><key name="home" qpos="0 0 0.3 1 0 0 0 {bent}"/></keyframe>'
        '</mujoco>'
    )


@pytest.fixture(scope='module')
def dog():
    return load_robot(quadruped())


def test_the_quadruped_has_its_feet_motors_and_pose(dog):
    assert [foot.frame for foot in dog.feet] == ['FL_shank', 'FR_shank', 'HL_shank', 'HR_shank']
    assert dog.n_joints == 12
    assert (dog.effort_limit == 40.0).all()
    assert dog.actuators.armature.tolist() == [0.01] * 12
    found = differences(dog, mujoco.MjModel.from_xml_string(quadruped()))
    assert max(found.values()) <= TOLERANCE, found


@pytest.mark.parametrize('motion', ['stand', 'trot'])
def test_todorov_at_its_defaults_equals_mujoco_step_by_step(dog, motion):
    model = at_defaults(mujoco.MjModel.from_xml_string(quadruped()))
    found = compared(dog, model, motion, STEPS)
    assert found.worst <= 1e-9
    assert found.loaded > 0.9 * STEPS
    assert found.lowest > 0.9


def test_a_ball_joint_moves_as_in_mujoco():
    text = (
        FEATURES['free and ball']
        .replace('type="ball"', 'type="ball" damping="0.01" armature="0.02"')
        .replace('<mujoco>', f'<mujoco><option timestep="{TIME_STEP}"/>')
    )
    robot, model = loaded(text, body_contacts=False), mujoco.MjModel.from_xml_string(text)
    own, data = robot.pinocchio_model, mujoco.MjData(model)
    q, v = pin.neutral(own), np.zeros(robot.nv)
    q[2] = data.qpos[2] = 5.0
    for name, speed in (('hip', [0.3]), ('knee', [0.5, -0.4, 0.2])):
        first, theirs = own.joints[own.getJointId(name)].idx_v, model.joint(name).dofadr[0]
        v[first : first + len(speed)] = data.qvel[theirs : theirs + len(speed)] = speed
    v[3] = data.qvel[3] = 0.3
    sim = Simulator(robot, 'todorov', time_step=TIME_STEP)
    sim.reset(q, v)
    for _ in range(200):
        report = sim.step(np.zeros(1))
        mujoco.mj_step(model, data)
    assert np.abs(report.v[3:] - data.qvel[3:]).max() <= 1e-12


def test_bad_feet_are_named():
    with pytest.raises(UnknownName, match='contact frame'):
        loaded(arm(), feet=['nowhere'])
