"""The scene graph, without a browser: what is where, and that showing a step only moves it."""

import numpy as np
import pinocchio as pin
import pytest
from terrains import GROUNDS

from contact_sim import Simulator, joined, load_robot, loose_ball, loose_box, robots
from contact_sim.collision._terrain import InclinedPlane, as_terrain
from contact_sim.constraints import PointAnchor
from contact_sim.drawing._body_meshes import box, cylinder
from contact_sim.errors import UnknownName
from contact_sim.robot._catalogue import textbook_systems
from contact_sim.terrain import TerrainGenerator

viser = pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view._saved import quiet_server  # noqa: E402
from contact_sim.view._scene import (  # noqa: E402
    LAYERS,
    TRAIL_TIME,
    Scene,
    smooth,
)

NEWTON = 0.01
"""Metres of an arrow per newton."""


@pytest.fixture(scope='module')
def one_server():
    with quiet_server() as server:
        yield server


@pytest.fixture
def server(one_server):
    yield one_server
    one_server.scene.reset()


def node(server, name):
    handle = server.scene.get_handle_by_name(name)
    assert handle is not None, name
    return handle


def along(handle):
    """Return what the arrows of a node point along, (n, 3)."""
    return np.array(handle.points[:, 1] - handle.points[:, 0], dtype=float)


def messages_of(server, monkeypatch):
    """Return a list to which every message of the scene is added from now on."""
    sent, queue = [], server.scene._queue_scene_message
    monkeypatch.setattr(server.scene, '_queue_scene_message', lambda m: (sent.append(m), queue(m)))
    return sent


@pytest.mark.parametrize('name', [*robots(), *textbook_systems()])
def test_every_robot_is_shown_and_then_only_moved(name, server, monkeypatch):
    robot = load_robot(name)
    sim = Simulator(robot)
    scene = Scene(server, robot, sim.terrain)
    known = set(server.scene._handle_from_node_name)
    assert len([one for one in known if one.startswith('/scene/meshes/')]) > 0
    assert all(f'/scene/{layer}' in known for layer in LAYERS)
    sent = messages_of(server, monkeypatch)
    for _ in range(2):
        sim.step(np.zeros(robot.n_joints))
        scene.show(sim.last_report)
    assert set(server.scene._handle_from_node_name) == known
    for name in known:
        if '/meshes/' in name:
            assert not node(server, name).flat_shading
    kinds = {type(message).__name__ for message in sent}
    assert kinds <= {'SceneNodeUpdateMessage', 'SetPositionMessage', 'SetOrientationMessage'}
    updated = {key for message in sent for key in getattr(message, 'updates', {})}
    assert updated.isdisjoint({'vertices', 'faces'})


def test_bodies_follow_the_joints(server):
    robot = load_robot('quadruped')
    sim = Simulator(robot)
    scene = Scene(server, robot, sim.terrain)
    q = pin.integrate(robot.pinocchio_model, sim.q, np.linspace(-0.4, 0.5, robot.nv))
    sim.reset(q=q)
    scene.show(sim.last_report)
    frame = sim.frame_placement('LF_FOOT')
    feet = [
        np.linalg.norm(handle.batched_positions - frame.translation, axis=1).min()
        for name, handle in server.scene._handle_from_node_name.items()
        if name.startswith('/scene/meshes/')
    ]
    assert min(feet) < 1e-6  # the ball of the foot is at its frame


def resting_ball(**said):
    robot = load_robot('rolling_sphere')
    sim = Simulator(robot, **said)
    for _ in range(5):
        sim.step([])
    return robot, sim


def test_the_force_on_a_ball_at_rest_is_its_weight(server):
    robot, sim = resting_ball()
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report)
    forces, normals = node(server, '/scene/forces/force'), node(server, '/scene/normals/normal')
    weight = robot.total_mass * 9.81
    assert along(forces) == pytest.approx(
        np.array([[0.0, 0.0, NEWTON * weight]]), rel=1e-5, abs=1e-6
    )
    assert forces.points[0, 0] == pytest.approx([*sim.q[:2], 0.0], abs=1e-5)
    assert along(normals) == pytest.approx(np.array([[0.0, 0.0, 0.05]]))
    assert len(node(server, '/scene/slip/slip').points) == 0
    assert forces.shaft_radius < 0.003  # those of RViz have 0.005
    centre, below = node(server, '/scene/centre_of_mass/balls').batched_positions
    assert centre == pytest.approx(sim.q[:3], abs=1e-6)
    assert below == pytest.approx([0, 0, 0], abs=1e-6)


def test_arrows_have_their_numbers_and_a_click_finds_them(server):
    robot, sim = resting_ball()
    scene = Scene(server, robot, sim.terrain)
    scene.offset = np.array([3.0, 0.0, 0.0])
    scene.show(sim.last_report, {'ball': np.array([0.0, 30.0, 0.0, 0.0, 0.0, 0.0])})
    assert server.scene.get_handle_by_name('/scene/numbers/0') is None
    scene.visible['numbers'] = True
    force, push = (node(server, f'/scene/numbers/{k}') for k in range(2))
    weight = robot.total_mass * 9.81
    assert (force.text, push.text) == (f'{weight:.3g} N', '30 N')
    assert force.position == pytest.approx([0.0, 0.0, NEWTON * weight], abs=1e-5)
    assert push.position == pytest.approx(sim.q[:3], abs=1e-6)
    at_arrow = np.array([3.0, 0.0, 0.5 * NEWTON * weight])
    for beside, hit in ((0.0, True), (0.01, True), (0.04, False)):
        eye = at_arrow + [0.0, -2.0, 0.0]
        assert scene.is_at_arrow(eye, at_arrow + [beside, 0.0, 0.0] - eye) is hit
        assert scene.is_at_arrow(eye, eye - at_arrow) is False  # behind the camera
    sim.reset(q=sim.q + np.eye(7)[2])
    scene.show(sim.last_report)
    assert not force.visible
    assert not push.visible


def test_round_shapes_are_smooth_and_edges_stay():
    sides = 24
    corner, edge = smooth(box((0.2, 0.3, 0.4))), smooth(cylinder(0.1, 0.5))
    assert len(corner.vertices) == 24  # each corner of its own for three faces
    assert len(edge.vertices) == 4 * sides + 2  # one ring for a cap, one for the side
    for shape, whole in ((corner, box((0.2, 0.3, 0.4))), (edge, cylinder(0.1, 0.5))):
        assert len(shape.triangles) == len(whole.triangles)
        assert volume(shape) == pytest.approx(volume(whole), rel=1e-9)


def volume(surface):
    """Return the volume inside of a surface, positive if its triangles look outside [m³]."""
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    return np.sum(np.cross(a, b) * c) / 6.0


def test_cones_have_the_friction_of_the_contact_and_vanish_with_it(server):
    robot, sim = resting_ball(friction=0.3, terrain=InclinedPlane(0.2))
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report)
    cones = node(server, '/scene/friction_cones/cones')
    assert cones.batched_scales == pytest.approx(np.array([[0.3, 0.3, 1.0]]))
    w, x, y, z = cones.batched_wxyzs[0].astype(float)
    axis = pin.Quaternion(w, x, y, z).matrix()[:, 2]
    assert axis == pytest.approx([np.sin(0.2), 0.0, np.cos(0.2)], abs=1e-6)
    sim.reset(q=sim.q + np.eye(7)[2])
    sim.step([])
    scene.show(sim.last_report)
    assert len(cones.batched_positions) == len(node(server, '/scene/forces/force').points) == 0


def test_a_slip_trail_is_the_way_that_a_brick_slides(server):
    """Friction takes μ g from its speed: after t it has slid v t − μ g t²/2."""
    robot = load_robot('sliding_brick')
    sim = Simulator(robot, friction=0.3)
    v = np.zeros(6)
    v[0] = 1.0
    sim.reset(v=v)
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report)
    for k in range(200):
        sim.step([])
        if k % 10 == 9:
            scene.show(sim.last_report)
    trails = node(server, '/scene/slip_trails/trails')
    per_corner = np.linalg.norm(along(trails), axis=1).sum() / 4.0
    assert per_corner == pytest.approx(0.2 - 0.5 * 0.3 * 9.81 * 0.2**2, rel=0.01)
    slip = along(node(server, '/scene/slip/slip'))
    assert slip == pytest.approx(np.tile([1.0 - 0.3 * 9.81 * 0.2, 0.0, 0.0], (4, 1)), abs=2e-3)
    for _ in range(int(TRAIL_TIME / sim.time_step) + 500):
        sim.step([])
    scene.show(sim.last_report)
    assert len(trails.points) == 0


def test_trails_do_not_jump_with_a_reset(server):
    robot = load_robot('sliding_brick')
    sim = Simulator(robot, friction=0.3)
    scene = Scene(server, robot, sim.terrain)
    for place in (0.0, 3.0):
        q, v = sim.q.copy(), np.zeros(6)
        q[0], v[0] = place, 1.0
        sim.reset(q=q, v=v)
        for _ in range(20):
            sim.step([])
            scene.show(sim.last_report)
    lengths = np.linalg.norm(along(node(server, '/scene/slip_trails/trails')), axis=1)
    assert len(lengths) > 0
    assert lengths.max() < 2e-3


def test_a_push_ends_where_it_acts(server):
    robot = load_robot('quadruped')
    sim = Simulator(robot)
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report, {'LF_FOOT': np.array([10.0, -20.0, 5.0, 0.0, 0.0, 2.0])})
    push = node(server, '/scene/pushes/push')
    foot = sim.frame_placement('LF_FOOT').translation
    assert push.points[0, 1] == pytest.approx(foot, abs=1e-6)
    assert along(push) == pytest.approx(NEWTON * np.array([[10.0, -20.0, 5.0]]), abs=1e-6)
    torque = node(server, '/scene/pushes/push_torque')
    assert torque.points[0, 0] == pytest.approx(foot, abs=1e-6)
    scene.show(sim.last_report)
    assert len(push.points) == len(torque.points) == 0


def test_a_body_on_a_ball_joint_hangs_with_its_weight(server):
    robot = load_robot('rolling_sphere')
    frame = robot.base_frame
    sim = Simulator(robot, constraints=[PointAnchor(frame, at=(0.0, 0.0, 1.0))])
    for _ in range(5):
        sim.step([])
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report)
    held = node(server, '/scene/constraints/constraint_force')
    weight = robot.total_mass * 9.81
    assert along(held) == pytest.approx(
        np.array([[0.0, 0.0, NEWTON * weight]]), rel=1e-5, abs=1e-6
    )
    assert held.points[0, 0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-5)


def test_several_robots_and_loose_bodies_that_touch(server):
    """A ball of 2 kg lies on a box: the pair carries its weight."""
    bodies = {'box': loose_box((0.6, 0.6, 0.2), 5.0), 'ball': loose_ball(0.1, 2.0)}
    world = joined(bodies, against_each_other=True)
    sim = Simulator(world)
    q = sim.q.copy()
    q[world.of('ball')[0]][:3] = 0.0, 0.0, 0.3
    sim.reset(q=q)
    for _ in range(100):
        sim.step([])
    scene = Scene(server, world, sim.terrain)
    scene.show(sim.last_report)
    pairs = node(server, '/scene/pairs/pair_force')
    # the ball on the box, and both on the ground
    assert np.abs(along(pairs))[:, 2].sum() == pytest.approx(NEWTON * 9.0 * 9.81, abs=1e-4)
    assert np.abs(pairs.points[:, 0] - [0.0, 0.0, 0.2]).max(axis=1).min() < 1e-3
    centres = node(server, '/scene/centre_of_mass/balls').batched_positions[::2]
    assert centres == pytest.approx(np.array([sim.q[:3], sim.q[7:10]]), abs=1e-6)


STAIRS = {'step_height_range': [0.05, 0.1], 'step_width': 0.3}
GENERATED = TerrainGenerator(
    size=(4.0, 4.0), num_cols=2, border_width=1.0,
    sub_terrains={'pyramid_stairs': STAIRS, 'wave': {'amplitude_range': [0.05, 0.1]}},
)  # fmt: skip


@pytest.mark.parametrize('name', [*GROUNDS, 'generated'])
def test_grounds_have_their_real_shape(name, server):
    ground = as_terrain(GENERATED.generate() if name == 'generated' else GROUNDS[name])
    Scene(server, load_robot('rolling_sphere'), ground)
    if 'plane' in name:
        plane = node(server, '/scene/ground/plane')
        w, x, y, z = plane.wxyz
        axes = pin.Quaternion(w, x, y, z).matrix()
        points = plane.position + np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]]) @ axes.T
        assert ground.signed_distance(points) == pytest.approx(np.zeros(3), abs=1e-12)
        assert axes[:, 2] == pytest.approx(ground.normals(points)[0])
        assert plane.infinite_grid  # however far the robot walks
        return
    surface = node(server, '/scene/ground/surface')
    assert (surface.cast_shadow, surface.receive_shadow) == (False, True)
    corners = surface.vertices[surface.faces].astype(float).reshape(-1, 3)
    assert ground.signed_distance(corners) == pytest.approx(np.zeros(len(corners)), abs=1e-6)


def test_layers_are_hidden_and_come_back_as_they_are_now(server, monkeypatch):
    robot, sim = resting_ball()
    scene = Scene(server, robot, sim.terrain)
    scene.show(sim.last_report)
    assert dict(scene.visible) == dict.fromkeys(LAYERS, True) | {'numbers': False}
    scene.visible['forces'] = scene.visible['meshes'] = False
    sent = messages_of(server, monkeypatch)
    sim.reset(q=sim.q + np.eye(7)[2])
    sim.step([])
    scene.show(sim.last_report)
    forces = node(server, '/scene/forces/force')
    assert len(forces.points) == 1  # as it was
    assert not [m for m in sent if m.name.startswith(('/scene/meshes', '/scene/forces'))]
    scene.visible['forces'] = True
    assert len(forces.points) == 0
    for visible in (False, True):
        scene.visible['ground'] = visible
        assert scene.visible['ground'] is visible
    with pytest.raises(UnknownName, match='shadows'):
        scene.visible['shadows'] = True


def test_two_scenes_beside_each_other_and_one_closed(server):
    robot, sim = resting_ball()
    first = Scene(server, robot, sim.terrain)
    second = Scene(server, robot, sim.terrain, prefix='sap', tint=(0.9, 0.1, 0.1, 0.5))
    second.offset = np.array([0.0, 2.0, 0.0])
    for scene in (first, second):
        scene.show(sim.last_report)
    assert node(server, '/sap').position == pytest.approx([0, 2, 0])
    ghost = node(server, '/sap/meshes/0')
    assert tuple(ghost.batched_colors) == (201, 3, 3)  # sRGB 0.9, 0.1, 0.1 as light
    assert ghost.opacity == 0.5
    second.close()
    names = set(server.scene._handle_from_node_name)
    assert not [name for name in names if name.startswith('/sap')]
    first.show(sim.last_report)


def test_the_camera_sees_all_of_the_robot(server):
    """Trunk and feet are in front of it, within its field of view, and not upside down."""
    robot = load_robot('quadruped')
    sim = Simulator(robot)
    camera = Scene(server, robot, sim.terrain).framing(sim.last_report)
    w, x, y, z = camera.wxyz
    axes = pin.Quaternion(w, x, y, z).matrix()
    feet = sim.last_report.contacts.position
    right, down, forward = axes.T @ (np.vstack([feet, sim.q[:3]]) - camera.position).T
    assert (forward > 0.0).all()
    assert np.abs(right / forward).max() < np.tan(0.5 * camera.field_of_view)
    assert np.abs(down / forward).max() < np.tan(0.5 * camera.field_of_view)
    assert axes[2, 1] < 0.0  # down on the picture is down in the world
