"""Solids of the body on the ground: their corners, and what they leave out."""

import coal
import manifold3d as m
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from contact_sim import (
    InvalidInput,
    RobotDescriptionError,
    RobotModel,
    Simulator,
    UnknownName,
    load_robot,
)
from contact_sim.robot._collision_pairs import RIM_CORNERS
from contact_sim.robot._contact_points import RIM, corners_of, reach_beyond, spread
from contact_sim.terrain import boxes

INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'


def body(*shapes, origin='<origin xyz="0.1 0.2 0.3" rpy="0 0 0"/>'):
    """Return a loose body with collision shapes, as URDF."""
    collisions = ''.join(
        f'<collision>{origin}<geometry>{shape}</geometry></collision>' for shape in shapes
    )
    inertial = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
    return f'<robot name="body"><link name="block">{inertial}{collisions}</link></robot>'


def contacts(*shapes, **options):
    return load_robot(body(*shapes)).with_body_contacts(**options)


def test_a_box_has_its_corners():
    robot = contacts('<box size="0.2 0.4 0.6"/>')
    places = np.array([point.offset for point in robot.body_points])
    assert places.shape == (8, 3)
    assert np.unique(places, axis=0).shape == (8, 3)
    assert np.abs(places - [0.1, 0.2, 0.3]) == pytest.approx(np.tile([0.1, 0.2, 0.3], (8, 1)))
    assert {point.radius for point in robot.body_points} == {0.0}
    assert {point.frame for point in robot.body_points} == {'block'}
    assert robot.approximations == ()
    assert robot.contact_points == robot.feet == ()


@pytest.mark.parametrize('turn', [0.0, 0.3, np.pi / 4])
def test_a_box_with_rounded_edges_touches_with_them(turn):
    """Its lowest point is that of the box shrunk by the radius, and the radius below it."""
    radius, half = 0.03, np.array([0.1, 0.2, 0.3])
    robot = contacts('<box size="0.2 0.4 0.6"/>', edge_radius=radius)
    assert {point.radius for point in robot.body_points} == {radius}
    assert robot.approximations[0].error == pytest.approx((np.sqrt(3.0) - 1.0) * radius)
    down = np.array([np.sin(turn), 0.0, -np.cos(turn)])
    deepest = max(
        (point.offset - [0.1, 0.2, 0.3]) @ down + point.radius for point in robot.body_points
    )
    assert deepest == pytest.approx(np.abs(down) @ (half - radius) + radius)
    if turn == 0.0:
        assert deepest == pytest.approx(0.3)  # it lies as high as the sharp one


def test_a_thin_box_is_rounded_by_a_quarter_of_its_thickness():
    plate, ball = '<box size="0.2 0.4 0.02"/>', '<sphere radius="0.05"/>'
    robot = contacts(plate, ball, edge_radius=0.5)
    assert sorted({point.radius for point in robot.body_points}) == [0.005, 0.05]
    with pytest.raises(InvalidInput, match=r'edge_radius = -1\.0 m'):
        contacts(plate, edge_radius=-1.0)


def test_the_corners_of_a_mesh_are_bounded_in_number(tmp_path):
    rng = np.random.default_rng(2)
    ways = rng.standard_normal((200, 3))
    hull = ConvexHull(0.2 * ways / np.linalg.norm(ways, axis=1)[:, None])
    lines = [f'v {x} {y} {z}' for x, y, z in hull.points]
    lines += [f'f {a + 1} {b + 1} {c + 1}' for a, b, c in hull.simplices]
    (tmp_path / 'ball.obj').write_text('\n'.join(lines), encoding='utf-8')
    robot = contacts(f'<mesh filename="{tmp_path}/ball.obj"/>', most=20)
    assert len(robot.body_points) == 20
    (approximation,) = robot.approximations
    kept = np.array([point.offset for point in robot.body_points]) - [0.1, 0.2, 0.3]
    assert approximation.error == pytest.approx(reach_beyond(kept, hull.points), rel=1e-5)
    assert 0.0 < approximation.error < 0.2


def test_a_foot_that_its_fixed_joint_names_is_a_foot_for_its_link_as_well():
    """Its sphere exists once, whichever way the foot was named."""
    by_link, joints = load_robot('go1'), [f'{leg}_foot_fixed' for leg in ('FR', 'FL', 'RR', 'RL')]
    by_joint = load_robot('go1', feet=joints)
    assert [point.radius for point in by_joint.contact_points] == [0.02] * 4
    expected = [point.name for point in by_link.with_body_contacts().body_points]
    assert [point.name for point in by_joint.with_body_contacts().body_points] == expected
    with pytest.raises(InvalidInput, match="'FL_foot' is a foot"):
        by_joint.with_body_contacts(['FL_foot'])


def test_a_sphere_is_itself():
    robot = contacts('<sphere radius="0.05"/>', '<box size="0.1 0.1 0.1"/>')
    ball, *corners = robot.body_points
    assert ball.offset == pytest.approx([0.1, 0.2, 0.3])
    assert (ball.radius, len(corners)) == (0.05, 8)
    assert robot.approximations == ()


def test_a_capsule_is_the_spheres_at_its_ends():
    corners, radius, error = corners_of(coal.Capsule(0.02, 0.3), 'capsule')
    assert np.abs(corners) == pytest.approx(np.array([[0.0, 0.0, 0.15]] * 2))
    assert (corners[:, 2].sum(), radius, error) == (0.0, 0.02, 0.0)


def test_a_cone_has_a_rim_and_an_apex():
    corners, radius, error = corners_of(coal.Cone(0.5, 0.4), 'cone')
    assert corners[-1] == pytest.approx([0.0, 0.0, 0.2])
    assert corners[:-1, 2] == pytest.approx(-0.2)
    assert np.hypot(corners[:-1, 0], corners[:-1, 1]) == pytest.approx(0.5)
    assert (radius, error) == (0.0, pytest.approx(0.5 * (1.0 - np.cos(np.pi / RIM))))


def test_other_shapes_are_refused():
    with pytest.raises(RobotDescriptionError, match="'wall': Halfspace is none of"):
        corners_of(coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), 'wall')


def test_a_cylinder_has_points_on_its_rims_and_says_what_lies_between_them():
    robot = contacts('<cylinder radius="0.5" length="0.2"/>')
    places = np.array([point.offset for point in robot.body_points]) - [0.1, 0.2, 0.3]
    assert len(places) == 2 * RIM_CORNERS
    assert np.hypot(places[:, 0], places[:, 1]) == pytest.approx(0.5)
    assert np.abs(places[:, 2]) == pytest.approx(0.1)
    # between two points the rim reaches beyond their chord by r (1 − cos(π/n))
    expected = 0.5 * (1.0 - np.cos(np.pi / RIM_CORNERS))
    assert robot.approximations[0].error == pytest.approx(expected)


def test_the_lowest_point_is_that_of_the_shapes_or_higher_by_at_most_the_error():
    """In 200 attitudes, against support functions of boxes and cylinders that Pinocchio places."""
    robot = load_robot('go1').with_body_contacts(most=12)
    model = robot.pinocchio_model
    geometry = pin.buildGeomFromUrdfString(
        model, robot.description, pin.GeometryType.COLLISION, package_dirs=list(robot.package_dirs)
    )
    data, feet = model.createData(), {point.frame for point in robot.contact_points}
    errors = {one.geometry: one.error for one in robot.approximations}
    rng = np.random.default_rng(0)
    for _ in range(200):
        q = pin.neutral(model)
        q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(*rng.uniform(-3.1, 3.1, 3))).coeffs()
        q[7:] = rng.uniform(-1.0, 1.0, model.nq - 7)
        placements = pin.GeometryData(geometry)
        pin.updateGeometryPlacements(model, data, geometry, placements, q)
        for k, shape in enumerate(geometry.geometryObjects):
            own = [point for point in robot.body_points if point.name.startswith(f'{shape.name}.')]
            if not own:
                continue
            assert model.frames[shape.parentFrame].name not in feet
            lowest = lowest_of(shape.geometry, placements.oMg[k])
            points = [
                data.oMi[model.getJointId(point.joint)].act(point.offset)[2] - point.radius
                for point in own
            ]
            assert lowest - 1e-9 <= min(points) <= lowest + errors.get(shape.name, 0.0) + 1e-9


def lowest_of(shape, placement):
    """Return the height of the lowest point of a box or cylinder, from its support function."""
    down = placement.rotation.T @ [0.0, 0.0, -1.0]
    if type(shape).__name__ == 'Box':
        reach = np.abs(down) @ shape.halfSide
    else:
        reach = shape.radius * np.hypot(down[0], down[1]) + shape.halfLength * abs(down[2])
    return placement.translation[2] - reach


@given(st.integers(0, 2**32 - 1), st.integers(5, 60), st.integers(4, 20))
@settings(max_examples=50)
def test_what_is_left_out_is_within_the_error(seed, count, most):
    rng = np.random.default_rng(seed)
    corners = rng.standard_normal((count, 3)) * rng.uniform(0.1, 3.0, 3)
    kept = corners[spread(corners, most, 'cloud')]
    assert len(kept) <= most
    ways = rng.standard_normal((500, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    beyond = (corners @ ways.T).max(axis=0) - (kept @ ways.T).max(axis=0)
    error = reach_beyond(kept, corners)
    assert beyond.max() <= error + 1e-9
    if most >= count:
        assert error == pytest.approx(0.0, abs=1e-9)


def test_links_are_chosen_by_name_and_feet_stay_feet():
    robot = load_robot('go1')
    chosen = robot.with_body_contacts(['trunk', 'FL_calf'])
    assert {point.frame for point in chosen.body_points} == {'trunk', 'FL_calf'}
    assert chosen.feet == robot.feet
    assert chosen.contact_points == robot.contact_points
    assert chosen.with_body_contacts(['trunk']).collisions.grounded == ('trunk_0',)
    assert len({point.joint for point in robot.with_body_contacts().body_points}) == 13
    assert robot.with_body_contacts([]).body_points == ()


@pytest.mark.parametrize(
    ('options', 'error', 'reason'),
    [
        ({'links': ['tail']}, UnknownName, "'tail'"),
        ({'links': ['FL_foot']}, InvalidInput, "'FL_foot' is a foot"),
        ({'links': ['trunk', 'trunk']}, InvalidInput, "'trunk' is a foot, or listed twice"),
        ({'links': 'trunk'}, InvalidInput, "links = 'trunk'"),
        ({'most': 3}, InvalidInput, 'most = 3: expected an integer >= 4'),
        ({'most': 8.0}, InvalidInput, r'most = 8\.0'),
    ],
)
def test_links_and_numbers_that_cannot_be_are_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        load_robot('go1').with_body_contacts(**options)


def test_a_robot_without_a_description_has_no_collision_geometry():
    robot = RobotModel.from_pinocchio(load_robot('go1').pinocchio_model)
    with pytest.raises(InvalidInput, match='without a URDF'):
        robot.with_body_contacts()


def test_a_link_that_does_not_move_touches_nothing():
    robot = load_robot('go1', floating_base=False)
    with pytest.raises(InvalidInput, match="'trunk' is fixed to the world"):
        robot.with_body_contacts(['trunk'])
    assert 'root_joint' not in {point.joint for point in robot.with_body_contacts().body_points}


def test_a_flat_mesh_is_refused(tmp_path):
    mesh = tmp_path / 'flat.obj'
    mesh.write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n', encoding='utf-8')
    robot = load_robot(body(f'<mesh filename="{mesh}"/>'))
    assert robot.collisions.grounded == ()
    assert any("'block_0': it is flat" in note for note in robot.notes)
    with pytest.raises(RobotDescriptionError, match="'block_0': it is flat"):
        robot.with_body_contacts()


def test_links_touch_the_ground_by_default_where_they_are_above_the_feet():
    robot = load_robot('go1')
    assert set(robot.collisions.grounded) == set(robot.with_body_contacts().collisions.grounded)
    assert load_robot('go1', body_contacts=False).collisions.grounded == ()
    foot = '<link name="foot"/><joint name="ankle" type="fixed"><parent link="block"/>'
    foot += '<child link="foot"/><origin xyz="0 0 -0.05"/></joint>'
    text = body('<box size="0.2 0.2 0.2"/>', origin='').replace('</robot>', f'{foot}</robot>')
    low = load_robot(text, feet=['foot'])  # the block reaches below its foot
    assert low.collisions.grounded == ()
    assert any('block_0' in note for note in low.notes)


def channel(path):
    """Write a channel, a plate between two walls that are open to +z [m]."""
    walls = [
        m.Manifold.cube(size, True).translate(place)
        for size, place in (
            ((0.2, 0.1, 0.02), (0.0, 0.0, -0.05)),
            ((0.02, 0.1, 0.12), (-0.09, 0.0, 0.0)),
            ((0.02, 0.1, 0.12), (0.09, 0.0, 0.0)),
        )
    ]
    mesh = m.Manifold.batch_boolean(walls, m.OpType.Add).to_mesh()
    lines = [f'v {x} {y} {z}' for x, y, z in mesh.vert_properties[:, :3]]
    lines += ['f {} {} {}'.format(*(triangle + 1)) for triangle in mesh.tri_verts]
    path.write_text('\n'.join(lines), encoding='utf-8')
    return load_robot(body(f'<mesh filename="{path}"/>', origin=''), body_contacts=False)


@pytest.mark.parametrize(('parts', 'height'), [(1, 0.06), (8, -0.04)])
def test_a_hollow_mesh_lets_a_rail_in_if_it_is_several_parts(parts, height, tmp_path):
    """Upside down over a rail: its hull lies on the rims of the walls, else the plate on it."""
    pytest.importorskip('coacd')
    robot = channel(tmp_path / 'channel.obj').with_body_contacts(convex_parts=parts)
    assert (len(robot.collisions.grounded) > 2) == (parts > 1)
    sim = Simulator(robot, terrain=boxes([[-0.05, -1.0, -0.5]], [[0.05, 1.0, 0.0]]))
    sim.reset(np.array([0.0, 0.0, height + 1e-3, 1.0, 0.0, 0.0, 0.0]))
    for _ in range(100):
        report = sim.step([])
    assert report.q[2] == pytest.approx(height, abs=1e-4)
    assert np.abs(report.v).max() < 1e-3


@pytest.mark.parametrize('parts', [0, -1, 65])
def test_numbers_of_parts_that_cannot_be_are_refused(parts):
    with pytest.raises(InvalidInput, match=f'convex_parts = {parts}'):
        contacts('<box size="0.2 0.4 0.6"/>', convex_parts=parts)
