"""Contacts between bodies that are convex hulls, cylinders or boxes with rounded edges."""

import numpy as np
import pinocchio as pin
import pytest
from hulls import about_centre, loose_hull
from robots import held
from scipy.spatial import ConvexHull
from textbook.arch import DENSITY, DEPTH, FRICTION, joints, least_thickness

from contact_sim import (
    Compliant,
    Simulator,
    Worlds,
    contact_models,
    joined,
    load_robot,
    loose_box,
)
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._contact_points import SIGNS

G = 9.81
NOTHING = np.zeros(0)
STIFF = {'compliant': Compliant(stiffness=1e5)}  # without gravity it has no weight
SOFT = ('compliant', 'sap', 'todorov')
RIGID = ['ncp', 'lcp', 'hybrid']
GOLDEN = 0.5 * (1.0 + 5.0**0.5)


def at(x, y, z, turn=None):
    """Return the configuration of a loose body, turned by a matrix."""
    return np.r_[x, y, z, pin.Quaternion(np.eye(3) if turn is None else turn).coeffs()]


def together(bodies, poses, velocities=None, model='ncp', **simulation):
    """Return loose bodies that may touch each other in a simulation."""
    both = joined(bodies, against_each_other=True)
    sim = Simulator(both, model, **simulation)
    v = np.concatenate([np.zeros(6) if velocities is None else velocities[k] for k in bodies])
    sim.reset(np.concatenate([poses[k] for k in bodies]), v)
    return sim


def cuboid(size):
    return 0.5 * SIGNS * size


def wedge(length, width, height):
    """Return corners of a wedge whose slope goes down along x."""
    x, y, z = 0.5 * length, 0.5 * width, 0.5 * height
    return np.array([[s * x, t * y, -z] for s in (-1, 1) for t in (-1, 1)]
                    + [[-x, -y, z], [-x, y, z]])  # fmt: skip


def icosahedron(edge):
    corners = [
        np.roll([0.0, a, b * GOLDEN], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)
    ]
    return 0.5 * edge * np.array(corners)


def on_a_face(corners):
    """Return corners about their centre, turned so that one face of their hull is below, flat."""
    corners = about_centre(corners)[0]
    n = ConvexHull(corners).equations[0, :3]
    turn = pin.Quaternion.FromTwoVectors(n, -np.eye(3)[2]).toRotationMatrix()
    return corners @ turn.T


RESTING = {
    'tetrahedron': on_a_face(0.1 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])),
    'icosahedron': on_a_face(icosahedron(0.1)),
    'wedge': about_centre(wedge(0.2, 0.12, 0.1))[0],
}


def as_boxes_and_hulls(poses, velocities, model, steps, **simulation):
    """Return q and v of two cubes, (steps, 26), as boxes and as hulls, and the largest force."""
    low, top = np.array([0.2, 0.2, 0.2]), np.array([0.1, 0.12, 0.1])
    runs, met = [], 0.0
    for bodies in (
        {'low': loose_box(low, 2.0), 'top': loose_box(top, 1.0)},
        {'low': loose_hull(cuboid(low), 2.0), 'top': loose_hull(cuboid(top), 1.0)},
    ):
        sim, rows = together(bodies, poses, velocities, model, **simulation), []
        for _ in range(steps):
            report = sim.step(NOTHING)
            rows.append(np.concatenate([report.q, report.v]))
            met = max(met, report.pairs.normal_force[~report.pairs.on_ground].max(initial=0.0))
        runs.append(np.array(rows))
    return *runs, met


def assert_alike(run, other):
    """Assert equal configurations, and velocities up to what such a gap does in a step of 1 ms.

    Faces are clipped within 1e-10 m of their rims by both kernels, but not at the same bits.
    """
    np.testing.assert_allclose(run[:, :14], other[:, :14], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(run[:, 14:], other[:, 14:], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize('model', contact_models())
def test_hulls_of_cubes_collide_as_boxes(model):
    """In the air, obliquely and turning: a corner meets a face."""
    turn = pin.rpy.rpyToMatrix(0.3, 0.25, 0.4)
    poses = {'low': at(0.0, 0.0, 1.0), 'top': at(0.02, 0.01, 1.19, turn)}
    velocities = {'low': np.zeros(6), 'top': np.array([0.5, 0.2, -2.0, 0.3, -0.2, 1.0])}
    boxes, hulls, met = as_boxes_and_hulls(
        poses, velocities, STIFF.get(model, model), 60, gravity=0.0, friction=0.4
    )
    assert met > 1.0
    assert np.abs(boxes[-1, 13:16]).max() > 0.1  # the lower one has been hit
    assert_alike(hulls, boxes)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu', 'sap', 'compliant'])
def test_a_hull_of_a_cube_slides_on_another_one_as_a_box(model):
    """Flat: forces are redundant, and solvers take the contacts in another order."""
    poses = {'low': at(0.0, 0.0, 0.1), 'top': at(0.02, 0.01, 0.25)}
    velocities = {'low': np.zeros(6), 'top': np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])}
    boxes, hulls, met = as_boxes_and_hulls(poses, velocities, model, 40, friction=0.4)
    assert met > 1.0
    assert_alike(hulls, boxes)


@pytest.mark.parametrize('model', ['ncp', 'hybrid', 'sap'])
@pytest.mark.parametrize('name', RESTING)
def test_a_hull_rests_on_a_box(model, name):
    """It keeps still, and the force on it is its weight through its centre."""
    corners = RESTING[name]
    bodies = {'low': loose_box((0.4, 0.4, 0.2), 2.0), 'top': loose_hull(corners, 1.0)}
    start = at(0.03, 0.02, 0.2 - corners[:, 2].min())
    sim = together(bodies, {'low': at(0, 0, 0.1), 'top': start}, model=model, friction=0.8)
    for _ in range(600):
        report = sim.step(NOTHING)
    soft, met = model in SOFT, ~report.pairs.on_ground
    assert met.sum() >= 3
    assert np.abs(report.v).max() < (1e-5 if soft else 1e-9)
    np.testing.assert_allclose(report.q[7:], start, atol=2e-3 if soft else 1e-9)
    force = report.pairs.force[met] * np.array(
        [
            [1.0 if pair[0].startswith('top') else -1.0]
            for pair in np.array(report.pairs.names)[met]
        ]
    )
    np.testing.assert_allclose(force.sum(axis=0), [0, 0, G], atol=1e-3 if soft else 1e-6)
    moment = np.cross(report.pairs.position[met] - report.q[7:10], force).sum(axis=0)
    np.testing.assert_allclose(moment[:2], 0.0, atol=5e-3 if soft else 1e-6)


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('friction', [0.3, 0.6])
def test_a_wedge_on_a_wedge_rests_or_slides(model, friction):
    """a = g (sin α − μ cos α) down the slope, 0 for μ > tan α; the lower one is held by its mass.

    The upper one is the same wedge upside down: together they are a box.
    """
    size, steps, h = (0.4, 0.2, 0.2), 100, 1e-3
    slope = np.arctan2(size[2], size[0])
    corners, _, _ = about_centre(wedge(*size))
    low = corners - [0.0, 0.0, corners[:, 2].min()]
    centre = np.array([0.0, 0.0, -corners[:, 2].min()])
    flip = pin.rpy.rpyToMatrix(0.0, np.pi, 0.0)
    small = 0.5 * corners
    # the middle of the upper slope over the middle of the lower one
    middle = slope_middle(low)
    top = middle - flip @ slope_middle(small)
    bodies = {'low': loose_hull(corners, 1e4), 'top': loose_hull(small, 1.0)}
    poses = {'low': at(*centre), 'top': at(*top, flip)}
    sim = together(bodies, poses, model=model, friction=friction, time_step=h)
    for _ in range(steps):
        report = sim.step(NOTHING)
    down = np.array([np.cos(slope), 0.0, -np.sin(slope)])
    expected = max(0.0, G * (np.sin(slope) - friction * np.cos(slope))) * steps * h
    velocity = pin.Quaternion(report.q[10:14]).matrix() @ report.v[6:9]
    np.testing.assert_allclose(velocity, expected * down, atol=2e-4 * G * steps * h)
    np.testing.assert_allclose(report.v[9:], 0.0, atol=1e-6)
    assert np.count_nonzero(~report.pairs.on_ground) >= 4


def slope_middle(corners):
    """Return the middle of the slope of a wedge: of its upper edge and its lower one."""
    upper = corners[corners[:, 2] > corners[:, 2].max() - 1e-9]
    lower = corners[corners[:, 0] > corners[:, 0].max() - 1e-9]
    return 0.5 * (upper.mean(axis=0) + lower.mean(axis=0))


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_stack_of_hulls_stands(model):
    """Prisms of five, six and seven sides on each other; the lowest one carries them all."""
    bodies, poses, height = {}, {}, 0.0
    for k, sides in enumerate((7, 5, 6)):
        angle = 2.0 * np.pi * np.arange(sides) / sides + 0.1 * k
        ring = 0.1 * np.column_stack([np.cos(angle), np.sin(angle)])
        corners = np.vstack([np.column_stack([ring, np.full(sides, z)]) for z in (-0.04, 0.04)])
        bodies[f'b{k}'], height = loose_hull(corners, 1.0 + k), height + 0.08
        poses[f'b{k}'] = at(0.01 * k, -0.005 * k, height - 0.04)
    sim = together(bodies, poses, model=model, friction=0.5)
    start = sim.q.copy()
    for _ in range(400):
        report = sim.step(NOTHING)
    np.testing.assert_allclose(report.q, start, atol=1e-8)
    assert np.abs(report.v).max() < 1e-8
    total = dict(zip(report.links.names, report.links.force, strict=True))
    for k in range(3):
        np.testing.assert_allclose(total[f'b{k}/root_joint'], [0, 0, (1.0 + k) * G], atol=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'hybrid', 'sap'])
def test_colliding_hulls_keep_momentum_and_gain_no_energy(model):
    rng, met = np.random.default_rng(7), 0
    bodies = {
        'a': loose_hull(RESTING['icosahedron'], 1.0),
        'b': loose_hull(wedge(0.3, 0.2, 0.1), 2.0),
    }
    for _ in range(6):
        turns = [pin.Quaternion(rng.normal(size=4)).normalized().matrix() for _ in bodies]
        poses = {
            'a': at(-0.3, 0.0, 1.0, turns[0]),
            'b': at(0.0, *rng.uniform(-0.05, 0.05, 2) + [0, 1], turns[1]),
        }
        velocities = {
            'a': np.r_[turns[0].T @ [2.0, 0.0, 0.0], rng.normal(size=3)],
            'b': np.r_[0.0, 0.0, 0.0, rng.normal(size=3)],
        }
        sim = together(bodies, poses, velocities, model, gravity=0.0, friction=0.6,
                       integrator='momentum', time_step=5e-4)  # fmt: skip
        model_, data = sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData()

        def momentum(sim=sim, model_=model_, data=data):
            pin.computeCentroidalMomentum(model_, data, sim.q, sim.v)
            linear = data.hg.linear.copy()
            return linear, data.hg.angular + np.cross(data.com[0], linear)

        before, energy = momentum(), pin.computeKineticEnergy(model_, data, sim.q, sim.v)
        pushed, largest = 0.0, energy
        for _ in range(500):
            report = sim.step(NOTHING)
            pushed = max(pushed, report.pairs.normal_force.max(initial=0.0))
            largest = max(largest, pin.computeKineticEnergy(model_, data, sim.q, sim.v))
        met += pushed > 1.0
        np.testing.assert_allclose(momentum()[0], before[0], atol=1e-11)
        np.testing.assert_allclose(momentum()[1], before[1], atol=2e-3)
        assert largest <= energy * (1.0 + (1e-3 if model == 'ncp' else 1e-6))
    assert met >= 4


@pytest.mark.parametrize('model', RIGID)
def test_a_cylinder_rolls_down_a_box(model):
    """a = 2/3 g sin α, as if it had no sides."""
    slope, r, half = 0.3, 0.1, 0.15
    up = np.array([np.sin(slope), 0.0, np.cos(slope)])
    i, axial = 0.25 * r * r + half * half / 3.0, 0.5 * r * r
    log = load_robot(
        f'<robot name="log"><link name="log"><inertial><mass value="1"/><inertia ixx="{i}" '
        f'iyy="{i}" izz="{axial}" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry>'
        f'<cylinder radius="{r}" length="{2 * half}"/></geometry></collision></link></robot>',
        feet=(), floating_base=True,
    )  # fmt: skip
    bodies = {'ramp': held('<box size="4 4 0.2"/>', '0 0 5', f'0 {slope} 0'), 'log': log}
    sim = Simulator(joined(bodies, against_each_other=True), model, friction=0.9)
    q = np.zeros(9)
    q[0] = 1.0
    q[2:5] = (0.1 + r) * up + [0.0, 0.0, 5.0]
    q[5:9] = pin.Quaternion(pin.rpy.rpyToMatrix(np.pi / 2, 0.0, 0.0)).coeffs()
    sim.reset(q)
    for _ in range(500):
        report = sim.step(np.zeros(1))
        assert len(report.pairs) == 2
    speed = np.linalg.norm(report.v[1:4])
    assert speed == pytest.approx(2.0 / 3.0 * G * np.sin(slope) * 0.5, rel=1e-6)
    assert (report.q - q)[2:5] @ up == pytest.approx(0.0, abs=1e-9 if model == 'hybrid' else 1e-6)


@pytest.mark.parametrize('radius', [0.005, 0.02])
def test_rounded_boxes_lie_on_each_other_as_high_as_sharp_ones(radius):
    low, top = loose_box((0.2, 0.2, 0.2), 2.0), loose_box((0.1, 0.12, 0.1), 1.0)
    bodies = {
        'low': low.with_body_contacts(edge_radius=radius),
        'top': top.with_body_contacts(edge_radius=radius),
    }
    sim = together(bodies, {'low': at(0, 0, 0.1), 'top': at(0.02, 0.01, 0.25)}, friction=0.6)
    for _ in range(300):
        report = sim.step(NOTHING)
    met = ~report.pairs.on_ground
    np.testing.assert_allclose(report.q[[2, 9]], [0.1, 0.25], atol=1e-9)
    np.testing.assert_allclose(report.pairs.position[met, 2], 0.2, atol=1e-9)
    np.testing.assert_allclose(report.pairs.gap[met], 0.0, atol=1e-9)
    assert np.abs(report.v).max() < 1e-9


def test_rounded_edges_meet_where_the_sharp_ones_would_not():
    """Edge on edge, at 45°: their distance is that of the arcs."""
    r, half = 0.02, 0.1
    turn = pin.rpy.rpyToMatrix(np.pi / 4, 0.0, 0.0)
    bodies = {
        name: loose_box((0.2, 0.2, 0.2), 1.0).with_body_contacts(edge_radius=r)
        for name in ('low', 'top')
    }
    reach = np.sqrt(2.0) * (half - r) + r
    poses = {'low': at(0, 0, 1.0, turn), 'top': at(0, 0, 1.0 + 2.0 * reach + 1e-3, turn)}
    sim = together(bodies, poses, gravity=0.0)
    report = sim.step(NOTHING)
    np.testing.assert_allclose(report.pairs.gap, 1e-3, atol=1e-12)
    assert len(report.pairs) == 2
    np.testing.assert_allclose(np.abs(report.pairs.position[:, 0]), half - r, atol=1e-12)


def legs(tmp_path):
    """Return a robot with two tetrahedra on joints: their boxes overlap, they do not."""
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    faces = [[1, 3, 2], [1, 2, 4], [1, 4, 3], [2, 3, 4]]
    lines = ['v {} {} {}'.format(*(0.2 * x for x in corner)) for corner in corners]
    lines += ['f {} {} {}'.format(*face) for face in faces]
    (tmp_path / 'corner.obj').write_text('\n'.join(lines), encoding='utf-8')
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    mesh = f'<collision><geometry><mesh filename="{tmp_path}/corner.obj"/></geometry></collision>'
    text = f'<robot name="legs"><link name="base">{inertial}</link>'
    for name, place, turn in (
        ('a', '0 0 0', '0 0 0'),
        ('b', '0.15 0.15 0.2', f'{np.pi} 0 {np.pi}'),
    ):
        text += (
            f'<link name="{name}">{inertial}{mesh}</link><joint name="{name}_joint" '
            f'type="revolute"><parent link="base"/><child link="{name}"/><axis xyz="0 0 1"/>'
            f'<origin xyz="{place}" rpy="{turn}"/>'
            '<limit lower="-2" upper="2" effort="100" velocity="100"/></joint>'
        )
    return load_robot(text + '</robot>', floating_base=True)


def test_self_collision_takes_the_hull_of_a_mesh(tmp_path):
    robot = legs(tmp_path).with_self_collision([('a', 'b')])
    assert [len(solid.corners) for solid in robot.collisions.solids] == [4, 4]
    assert robot.approximations == ()  # four corners: nothing is left out
    assert legs(tmp_path).with_self_collision().collisions.pairs == robot.collisions.pairs
    cylinder = load_robot(
        '<robot name="c"><link name="c"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        'izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><cylinder radius="0.1" '
        'length="0.2"/></geometry></collision></link></robot>', feet=(), floating_base=True,
    )  # fmt: skip
    both = joined({'a': cylinder, 'b': cylinder}, against_each_other=True)
    assert [one.geometry for one in both.approximations] == ['a/c_0', 'b/c_0']
    assert 'prism of 16 sides' in both.approximations[0].stands
    assert both.approximations[0].error == pytest.approx(0.1 * (1.0 - np.cos(np.pi / 16)))


def test_recordings_and_worlds_with_hulls_are_equal_to_the_bit(tmp_path):
    bodies = {
        'low': loose_box((0.4, 0.4, 0.2), 2.0),
        'top': loose_hull(RESTING['icosahedron'], 1.0),
    }
    poses = {'low': at(0, 0, 0.1), 'top': at(0.03, 0.02, 0.35)}
    sim = together(bodies, poses, {'low': np.zeros(6), 'top': np.r_[0.5, 0.2, 0.0, 1.0, 2.0, 0.0]})
    q, v = sim.q.copy(), sim.v.copy()
    worlds = Worlds(sim.robot, 2)
    worlds.reset(q=q, v=v)
    recorder = Recorder(sim, tmp_path / 'run.npz')
    for _ in range(200):
        report = sim.step(NOTHING)
    recorder.close()
    assert (~report.pairs.on_ground).any()
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.steps == 200
    assert outcome.equal
    worlds.run(lambda time, q, v: np.zeros((2, 0)), 200)
    np.testing.assert_array_equal(worlds.q, [report.q] * 2)


# An arch of blocks, against limit analysis.


def arch(count, thickness, model):
    """Return an arch of loose blocks on the ground, at rest."""
    inner, outer = joints(count, thickness)
    bodies, poses = {}, {}
    for k in range(count):
        ring = np.array([inner[k], outer[k], inner[k + 1], outer[k + 1]])
        corners = np.array([[x, y, z] for x, z in ring for y in (-0.5 * DEPTH, 0.5 * DEPTH)])
        volume = about_centre(corners)[1]
        bodies[f'b{k}'] = loose_hull(corners, DENSITY * volume)
        poses[f'b{k}'] = at(*(corners - about_centre(corners)[0]).mean(axis=0))
    both = joined(bodies, against_each_other=True, most=16 * count)
    sim = Simulator(both, model, friction=FRICTION)
    sim.reset(np.concatenate(list(poses.values())))
    return sim


@pytest.mark.parametrize('count', [7, 9])
def test_an_arch_stands_from_the_thickness_of_limit_analysis_on(count):
    """It keeps still if a little thicker, and begins to fall at once if a little thinner."""
    least = least_thickness(count)
    for share, stands in ((1.002, True), (0.998, False)):
        sim = arch(count, share * least, 'ncp')
        start = sim.q.copy()
        for _ in range(100):
            report = sim.step(NOTHING)
        if stands:
            np.testing.assert_allclose(report.q, start, atol=1e-7)
            assert np.abs(report.v).max() < 1e-6
        else:
            assert np.abs(report.v).max() > 1e-3
    # much thinner, it falls in
    sim = arch(count, 0.8 * least, 'ncp')
    top = 7 * (count // 2) + 2
    high = sim.q[top]
    for _ in range(600):
        report = sim.step(NOTHING)
    assert report.q[top] < high - 0.2
