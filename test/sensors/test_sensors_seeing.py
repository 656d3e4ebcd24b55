"""Sensors that see: height scan, rays, lidar and depth camera, against closed forms."""

import math
import sys

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact_sim import InvalidInput, Simulator, UnknownName, Worlds, load_robot
from contact_sim.collision import CylinderGround, InclinedPlane, Plane, SphereGround
from contact_sim.collision._terrain import as_terrain, groove
from contact_sim.sensors import DelayedSensor, DepthCamera, HeightScan, Lidar, RangeSensing
from contact_sim.sensors._ray_scene import CUTS, RayScene
from contact_sim.terrain import HeightField, ScanGrid, Terraces, boxes

RADIUS, TILT, ROUGH = 5.0, 0.3, np.random.default_rng(3).uniform(-0.1, 0.1, (41, 31))


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def interpolated(x, y):
    """Return the height of two triangles per cell of ROUGH, whose diagonal runs from (0, 0)."""
    u, v = (x + 4.0) / 0.2, (y + 3.0) / 0.2
    i, j = np.minimum(u.astype(int), 39), np.minimum(v.astype(int), 29)
    u, v = u - i, v - j
    z = ROUGH
    lower = z[i, j] + u * (z[i + 1, j] - z[i, j]) + v * (z[i + 1, j + 1] - z[i + 1, j])
    upper = z[i, j] + v * (z[i, j + 1] - z[i, j]) + u * (z[i + 1, j + 1] - z[i, j + 1])
    return np.where(v <= u, lower, upper)


GROUNDS = {
    'plane': (Plane(offset=0.2), lambda x, y: np.full_like(x, 0.2)),
    'incline': (InclinedPlane(angle=TILT), lambda x, y: -math.tan(TILT) * x),
    'groove': (groove(0.2), lambda x, y: np.abs(y) * math.tan(0.2)),
    'ball': (SphereGround((0.0, 0.0, -RADIUS), RADIUS),
             lambda x, y: np.sqrt(RADIUS**2 - x**2 - y**2) - RADIUS),
    'bowl': (SphereGround((0.0, 0.0, RADIUS), RADIUS, hollow=True),
             lambda x, y: RADIUS - np.sqrt(RADIUS**2 - x**2 - y**2)),
    'barrel': (CylinderGround((0.0, 0.0, -RADIUS), (0.0, 1.0, 0.0), RADIUS),
               lambda x, y: np.sqrt(RADIUS**2 - x**2) - RADIUS),
    'field': (HeightField(ROUGH, 0.2, (-4.0, -3.0)), interpolated),
    'terraces': (Terraces([-9.0, 0.33, 9.0], [-9.0, 9.0], [[0.0], [0.15]]).as_mesh(),
                 lambda x, y: np.where(x >= 0.33, 0.15, 0.0)),
    'box': (boxes([(-1.0, -1.0, -0.5)], [(1.0, 1.0, 0.3)]),
            lambda x, y: np.where((abs(x) <= 1.0) & (abs(y) <= 1.0), 0.3, np.nan)),
}  # fmt: skip


def test_the_default_grid_is_that_of_policies_for_rough_ground():
    grid = ScanGrid()
    x, y = np.arange(-8, 9) / 10, np.arange(-5, 6) / 10
    assert len(grid) == 187
    assert grid.shape == (17, 11)
    np.testing.assert_allclose(grid.points[:11], np.column_stack([np.full(11, -0.8), y]))
    by_x = ScanGrid(fastest='x')
    np.testing.assert_allclose(by_x.points[:17], np.column_stack([x, np.full(17, -0.5)]))
    moved = ScanGrid((0.2, 0.0), 0.1, (0.4, 0.1))
    np.testing.assert_allclose(moved.points, [(0.3, 0.1), (0.4, 0.1), (0.5, 0.1)])


@pytest.mark.parametrize('name', GROUNDS)
def test_a_scan_is_exact_on_every_ground(name):
    ground, height = as_terrain(GROUNDS[name][0]), GROUNDS[name][1]
    random = np.random.default_rng(1)
    places = np.column_stack([random.uniform(-1, 1, (20, 2)), random.uniform(1, 2, 20)])
    headings = random.uniform(-np.pi, np.pi, 20)
    grid = ScanGrid()
    below = grid.below(ground, places, headings)
    for place, heading, found in zip(places, headings, below, strict=True):
        turn = np.array([[math.cos(heading), -math.sin(heading)],
                         [math.sin(heading), math.cos(heading)]])  # fmt: skip
        x, y = (place[:2] + grid.points @ turn.T).T
        expected = place[2] - height(x, y)
        expected[np.isnan(expected)] = np.inf
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-12)
    several = grid.below([ground, as_terrain(GROUNDS['incline'][0])], places[:2], headings[:2])
    np.testing.assert_array_equal(several[0], below[0])
    assert np.abs(several[1] - below[1]).max() > 0.01 or name == 'incline'


def test_the_sensor_and_worlds_see_the_same_from_any_frame(go1):
    grounds = [as_terrain('stairs'), as_terrain('pyramid')]
    worlds = Worlds(go1, 2, terrain=grounds)
    q = worlds.q.copy()
    q[:, 3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.2, -0.1, 0.7)).coeffs()
    q[:, 2] += 0.3
    worlds.reset(q)
    worlds.step(np.zeros((2, 12)), 3)
    grid = ScanGrid((0.6, 0.4), fastest='x')
    for frame in ('', 'FL_foot'):
        scan = worlds.height_scan(grid, frame)
        for i, ground in enumerate(grounds):
            values = HeightScan(go1, ground, frame, grid=grid).truth(worlds.report(i))
            np.testing.assert_allclose(values.below, scan[i], rtol=0.0, atol=1e-14)
            data = go1.pinocchio_model.createData()
            pin.framesForwardKinematics(go1.pinocchio_model, data, worlds.q[i])
            placement = data.oMf[go1.pinocchio_model.getFrameId(frame or go1.base_frame)]
            heights = [ground.height(x, y) for x, y, _ in values.points]
            np.testing.assert_array_equal(values.points[:, 2], heights)
            np.testing.assert_allclose(values.below, placement.translation[2] - heights)
            origin, axes = (part[i] for part in worlds.frame_placements(frame or go1.base_frame))
            np.testing.assert_allclose(origin, placement.translation, rtol=0.0, atol=1e-14)
            np.testing.assert_allclose(axes, placement.rotation, rtol=0.0, atol=1e-14)


# --- Rays


def surface(kind, sizes, points):
    """Return a function of points (n, 3) that is negative inside of a shape, zero on it."""
    x, y, z = points.T
    if kind == 'Sphere':
        return np.linalg.norm(points, axis=1) - sizes[0]
    if kind == 'Capsule':
        along = z - np.clip(z, -sizes[1], sizes[1])
        return np.sqrt(x**2 + y**2 + along**2) - sizes[0]
    if kind == 'Cylinder':
        return np.maximum(np.hypot(x, y) - sizes[0], np.abs(z) - sizes[1])
    if kind == 'Box':
        return (np.abs(points) - sizes).max(axis=1)
    return np.linalg.norm(points / sizes, axis=1) - 1.0


NUMBERS = {'Sphere': 1, 'Capsule': 2, 'Cylinder': 2, 'Box': 3, 'Ellipsoid': 3}


@pytest.mark.parametrize('kind', CUTS)
@given(seed=st.integers(0, 2**32 - 1))
def test_rays_cut_shapes_where_their_surface_is(kind, seed):
    random = np.random.default_rng(seed)
    sizes = random.uniform(0.1, 1.0, NUMBERS[kind])
    begin = random.normal(size=(50, 3)) * 2.0
    ways = random.normal(size=(50, 3))
    ways[:20] = 0.3 * random.normal(size=(20, 3)) - begin[:20]  # most of these meet it
    ways[40:, random.integers(3)] = 0.0
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    enter, leave = CUTS[kind](begin, ways, *sizes)
    met = enter <= leave
    for cut in (enter, leave):
        finite = met & np.isfinite(cut)
        on = begin[finite] + cut[finite, None] * ways[finite]
        assert np.abs(surface(kind, sizes, on)).max(initial=0.0) < 1e-10
    for ray in range(len(begin)):  # inside between the two, and nowhere else
        t = np.linspace(-8.0, 8.0, 400)
        inside = surface(kind, sizes, begin[ray] + t[:, None] * ways[ray]) < -1e-9
        between = (t > enter[ray]) & (t < leave[ray])
        assert not (inside & ~between).any()
        clear = (t > enter[ray] + 1e-6) & (t < leave[ray] - 1e-6)
        assert (surface(kind, sizes, begin[ray] + t[clear, None] * ways[ray]) <= 1e-9).all()


@pytest.mark.parametrize('name', GROUNDS)
def test_rays_meet_the_ground_where_sphere_tracing_does(go1, name):
    sim = Simulator(go1, terrain=GROUNDS[name][0])
    random = np.random.default_rng(2)
    begin = np.column_stack([random.uniform(-1, 1, (300, 2)), random.uniform(0.5, 2, 300)])
    ways = random.normal(size=(300, 3))
    hits = RayScene(go1, sim.terrain, hidden=None).cast(sim.q, begin, ways, 100.0)
    expected = sim.ray_cast(begin, ways, 100.0)
    np.testing.assert_array_equal(np.isfinite(hits.distance), np.isfinite(expected))
    met = np.isfinite(expected)
    assert met.mean() > 0.05
    assert np.abs(hits.distance[met] - expected[met]).max() < 1e-9
    np.testing.assert_array_equal(hits.met, np.where(met, 0, -1))
    inside = RayScene(go1, sim.terrain, hidden=None).cast(sim.q, (0.0, 0.0, -0.2), ways[:5])
    assert (inside.distance == 0.0).all() or name in ('bowl',)


def test_rays_see_links_where_they_are(go1):
    sim = Simulator(go1)
    scene = RayScene(go1, sim.terrain)
    assert 'trunk' in scene.names
    hits = scene.cast(sim.q, (0.0, 0.0, 2.0), [(0.0, 0.0, -1.0), (0.0, 0.0, 1.0)])
    assert scene.names[hits.met[0]] == 'trunk'
    top = 2.0 - sim.q[2] - 0.114 / 2  # the trunk of go1 is a box of 0.114 m
    np.testing.assert_allclose(hits.distance, [top, np.inf], atol=1e-12)
    # what is hidden is not seen
    hidden = RayScene(go1, sim.terrain, scene.names[1:])
    np.testing.assert_allclose(
        hidden.cast(sim.q, (0.0, 0.0, 2.0), [(0.0, 0.0, -1.0)]).distance, 2.0
    )
    # it moves with the robot
    q = sim.q.copy()
    q[:3] += [3.0, 0.0, 0.5]
    moved = scene.cast(q, (3.0, 0.0, 2.0), [(0.0, 0.0, -2.0)])
    np.testing.assert_allclose(moved.distance, top - 0.5, atol=1e-12)


def test_rays_agree_with_mujoco(go1):
    mujoco = pytest.importorskip('mujoco')
    shapes = {'sphere': '0.3', 'capsule': '0.1 0.2', 'cylinder': '0.2 0.15', 'box': '0.1 0.2 0.3'}
    geoms = ''.join(
        f'<geom type="{kind}" size="{size}" pos="{k} 0 1" euler="20 30 {40 * k}"/>'
        for k, (kind, size) in enumerate(shapes.items())
    )
    urdf = ''.join(
        f'<collision><origin xyz="{k} 0 1" rpy="{{}}"/><geometry>{shape}</geometry></collision>'
        for k, shape in enumerate((
            '<sphere radius="0.3"/>', '<capsule radius="0.1" length="0.4"/>',
            '<cylinder radius="0.2" length="0.3"/>', '<box size="0.2 0.4 0.6"/>',
        ))
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody>{geoms}</worldbody></mujoco>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    turns = [pin.rpy.matrixToRpy(data.geom_xmat[k].reshape(3, 3)) for k in range(4)]
    link = urdf.format(*(' '.join(map(repr, turn.tolist())) for turn in turns))
    robot = load_robot(
        '<robot name="shapes"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
        f'izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{link}</link></robot>',
        feet=[],
    )
    random = np.random.default_rng(4)
    begin = random.uniform([-1, -2, 0], [4, 2, 3], (400, 3))
    targets = np.column_stack([np.arange(400) % 4, np.zeros(400), np.ones(400)])
    ways = targets + 0.2 * random.normal(size=(400, 3)) - begin
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    scene = RayScene(robot, Plane(offset=-50.0))
    found = scene.cast(pin.neutral(robot.pinocchio_model), begin, ways, 40.0).distance
    geom = np.zeros(1, dtype=np.int32)
    expected = np.array([
        mujoco.mj_ray(model, data, start, way, None, 1, -1, geom)
        for start, way in zip(begin, ways, strict=True)
    ])  # fmt: skip
    expected[expected < 0.0] = np.inf
    assert np.isfinite(expected).sum() > 200
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)


# --- Lidar and camera


def test_a_lidar_over_a_plane(go1):
    sim = Simulator(go1, terrain=Plane(offset=-0.1))
    report = sim.step(np.zeros(12))
    links = tuple(RayScene(go1, sim.terrain).names[1:])
    lidar = Lidar(go1, sim.terrain, hidden=links, rings=3, elevation=(-0.5, 0.5), columns=8,
                  most=5.0)  # fmt: skip
    values = lidar.truth(report)
    assert values.ranges.shape == (3, 8)
    np.testing.assert_allclose(lidar.azimuths, -np.pi + np.arange(8) * np.pi / 4)
    placement = sim.frame_placement(go1.base_frame)
    for ring in range(3):
        for column in range(8):
            up = (placement.rotation @ lidar.directions[ring, column])[2]
            expected = (placement.translation[2] + 0.1) / -up if up < 0.0 else np.inf
            expected = expected if expected <= 5.0 else np.inf
            np.testing.assert_allclose(values.ranges[ring, column], expected, rtol=1e-12)
    low = values.points @ placement.rotation.T + placement.translation
    np.testing.assert_allclose(low[:, 2], -0.1, atol=1e-12)
    one = Lidar(go1, sim.terrain, rings=1, elevation=(-0.2, 0.4), columns=3, azimuth=(-1.0, 1.0))
    np.testing.assert_allclose(one.azimuths, [-1.0, 0.0, 1.0])
    np.testing.assert_allclose(one.directions[..., 2], math.sin(-0.2))
    near = Lidar(go1, sim.terrain, hidden=links, rings=1, elevation=(-0.5, 0.5), least=2.0)
    assert (near.truth(report).ranges == -np.inf).all()


def test_a_camera_that_looks_down_sees_one_depth(go1):
    sim = Simulator(go1)
    q = sim.q.copy()
    q[2], q[3:7] = 1.5, pin.Quaternion(pin.rpy.rpyToMatrix(0.0, math.pi / 2, 0.0)).coeffs()
    sim.reset(q)
    links = tuple(RayScene(go1, sim.terrain).names[1:])
    camera = DepthCamera(go1, sim.terrain, hidden=links, width=8, height=6)
    values = camera.truth(sim.last_report)
    np.testing.assert_allclose(camera.depth(values), 1.5, rtol=1e-12)
    # half a pixel inside of the edges of the image: tan(α / 2) over the depth
    wide = values.directions[3, [0, -1]] @ sim.frame_placement('base').rotation.T
    across = np.tan(0.5 * camera.angle_of_view) * 7 / 8
    np.testing.assert_allclose(np.abs(wide[:, 1] / wide[:, 2]), across, rtol=1e-12)
    assert wide[0, 1] > 0.0 > wide[1, 1]  # the first column is on the left, +y of the robot
    plain = DepthCamera(go1, sim.terrain, width=2, height=2, optical=False)
    np.testing.assert_allclose(plain.directions.mean(axis=(0, 1))[:2], 0.0, atol=1e-15)
    assert (plain.directions[..., 2] > 0.0).all()


def test_errors_of_ranges(go1):
    sim = Simulator(go1)
    report = sim.step(np.zeros(12))
    sensing = RangeSensing(noise=0.02, dropout=0.25, latency=2)
    scan = HeightScan(go1, sim.terrain, grid=ScanGrid((6.0, 6.0)), sensing=sensing, seed=3)
    exact, values = scan.truth(report).below, scan.measure(report).below
    lost = np.isinf(values)
    assert abs(lost.mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / lost.size)
    errors = (values - exact)[~lost]
    assert abs(errors.std() / 0.02 - 1.0) < 5 / math.sqrt(2 * errors.size)
    np.testing.assert_array_equal(scan.measure(report).below, values)
    np.testing.assert_allclose(scan.variance['below'], 0.02**2)
    rounded = HeightScan(go1, sim.terrain, sensing=RangeSensing(resolution=0.05)).measure(report)
    np.testing.assert_allclose(rounded.below / 0.05, np.round(rounded.below / 0.05), atol=1e-12)
    delayed = DelayedSensor(scan)
    first = delayed.read(report)
    for _ in range(2):
        late = delayed.read(sim.step(np.zeros(12)))
    np.testing.assert_array_equal(late.measured.below, first.measured.below)


@pytest.mark.parametrize(
    ('make', 'error', 'words'),
    [
        (lambda r, t: ScanGrid(resolution=0.0), InvalidInput, 'resolution'),
        (lambda r, t: ScanGrid(size=(-1.0, 1.0)), InvalidInput, 'size'),
        (lambda r, t: ScanGrid(size=(1e6, 1e6)), InvalidInput, 'points'),
        (lambda r, t: ScanGrid(fastest='z'), UnknownName, 'fastest'),
        (lambda r, t: ScanGrid().below(t, np.zeros((2, 2)), [0, 0]), InvalidInput, 'places'),
        (lambda r, t: ScanGrid().below([t], np.zeros((2, 3)), [0, 0]), InvalidInput, '1 given'),
        (lambda r, t: HeightScan(r, t, 'FL_fot'), UnknownName, "'FL_foot'"),
        (lambda r, t: HeightScan(r, 'stair'), UnknownName, "'stairs'"),
        (lambda r, t: Lidar(r, [t]), InvalidInput, 'terrain'),
        (lambda r, t: RayScene(r, [t]), InvalidInput, 'terrain'),
        (lambda r, t: ScanGrid().below('plane', np.zeros((1, 3)), [0]), InvalidInput, 'ground'),
        (lambda r, t: Lidar(r, t, rings=0), InvalidInput, 'rings'),
        (lambda r, t: Lidar(r, t, rings=10_000, columns=10_000), InvalidInput, 'rays'),
        (lambda r, t: Lidar(r, t, elevation=(0.2, -0.2)), InvalidInput, 'elevation'),
        (lambda r, t: Lidar(r, t, least=3.0, most=2.0), InvalidInput, 'least'),
        (lambda r, t: Lidar(r, t, hidden=('trunkk',)), UnknownName, "'trunk'"),
        (lambda r, t: DepthCamera(r, t, angle_of_view=math.pi), InvalidInput, 'angle_of_view'),
        (lambda r, t: DepthCamera(r, t, width=0), InvalidInput, 'width'),
        (lambda r, t: RayScene(r, t).cast(np.zeros(19), (0, 0, 1), [(0, 0, 0)]), InvalidInput,
         'directions'),
    ],
)  # fmt: skip
def test_what_is_refused(go1, make, error, words):
    with pytest.raises(error, match=words):
        make(go1, Plane())


def test_without_a_ray_tracer_the_extra_is_named(go1, monkeypatch):
    monkeypatch.setitem(sys.modules, 'embreex', None)
    assert RayScene(go1, Plane()).names[0] == 'ground'
    with pytest.raises(InvalidInput, match=r'contact_sim\[rays\]'):
        RayScene(go1, as_terrain('stairs'))
