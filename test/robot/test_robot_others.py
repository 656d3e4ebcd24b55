"""URDFs of others: a world as root link, moments that were rounded, limits of zero."""

import numpy as np
import pytest
from urdf_texts import SPHERE, joint, link, robot

from contact_sim import Simulator, load_robot
from contact_sim.errors import InvalidInput, RobotDescriptionError
from contact_sim.robot._files import xacro_arguments


def in_world(mass=None, kind='floating'):
    return robot(
        link('world', mass), link('base', 3.0, SPHERE), link('leg'),
        joint('float', 'world', 'base', kind, limit=''), joint('hip', 'base', 'leg'),
    )  # fmt: skip


def test_a_world_with_a_floating_joint_is_the_world():
    """As Unitree's AS2 and b2: with another floating base it would have two."""
    loaded = [
        load_robot(in_world(mass), floating, feet=['base'])
        for mass in (None, 0.0) for floating in (True, False)
    ]  # fmt: skip
    for one in loaded:
        assert one.floating_base
        assert one.base_frame == 'base'
        assert (one.nv, one.joint_names) == (7, ('hip',))
    sim = Simulator(loaded[0], friction=1.0)
    for _ in range(200):
        sim.step([0.0])
    assert sim.last_report.contacts.normal_force.sum() == pytest.approx(4.0 * 9.81, rel=0.05)


def test_a_root_link_with_mass_or_another_joint_is_a_body():
    assert load_robot(in_world(2.0)).nv == 13
    assert load_robot(in_world(2.0), floating_base=False).nv == 7


def with_moments(low):
    moments = f'ixx="{low}" iyy="{low[1:]}" izz="{low[1:]}"'
    antenna = (
        f'<link name="antenna"><inertial><mass value="0.1"/><inertia {moments} ixy="0" ixz="0" '
        'iyz="0"/></inertial></link>'
    )
    return robot(link('base'), antenna, joint('weld', 'base', 'antenna', 'fixed', limit=''))


@pytest.mark.parametrize('low', ['-2.41e-35', '-3.53e-08', '-1e-7'])
def test_a_moment_that_was_rounded_below_zero(low):
    with pytest.warns(UserWarning, match=r"link 'antenna': .* none below 0; taken for rounding"):
        assert load_robot(with_moments(low)).total_mass == pytest.approx(1.1)


def test_a_moment_that_is_negative():
    with pytest.raises(RobotDescriptionError, match='expected none below 0'):
        load_robot(with_moments('-1.1e-7'))


def test_an_effort_of_zero_is_no_limit():
    hip = joint('hip', 'base', 'leg').replace('effort="30"', 'effort="0.0"')
    text = robot(link('base'), link('leg'), link('foot'), hip, joint('knee', 'leg', 'foot'))
    with pytest.warns(UserWarning, match='effort="0" is taken for no limit: hip'):
        leg = load_robot(text)
    assert np.array_equal(leg.effort_limit, [np.inf, 30.0])
    sim = Simulator(leg, gravity=0.0)
    assert np.array_equal(sim.step([40.0, 40.0]).record.effort, [40.0, 30.0])


def test_no_message_recommends_what_only_python_has():
    text = robot(
        link('base', 1.0, '<visual><geometry><mesh filename="x.stl"/></geometry></visual>')
    )
    with pytest.raises(RobotDescriptionError, match='where check_meshes is false') as caught:
        load_robot(text)
    assert 'load_robot(' not in str(caught.value)


def test_arguments_of_a_xacro_as_text():
    assert xacro_arguments([]) is None
    assert xacro_arguments(['mass:=3', 'name:=a:=b', ' arm:=']) == {
        'mass': '3', 'name': 'a:=b', 'arm': '',
    }  # fmt: skip
    for text in ('mass=3', ':=3', 'mass', ' :=3'):
        with pytest.raises(InvalidInput, match='expected name:=value'):
            xacro_arguments([text])
