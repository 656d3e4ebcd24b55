"""Small robots as URDF text, with one thing to get wrong at a time."""

from __future__ import annotations

INERTIAL = (
    '<inertial><origin xyz="0 0 -0.1"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
)


def link(name: str, mass: object = 1.0, more: str = '') -> str:
    """Return a link; mass None leaves <inertial> out."""
    inertial = '' if mass is None else INERTIAL.format(mass=mass)
    return f'<link name="{name}">{inertial}{more}</link>'


def joint(
    name: str,
    parent: str,
    child: str,
    kind: str = 'revolute',
    axis: str = '0 1 0',
    limit: str = '<limit lower="-1" upper="2" effort="30" velocity="20"/>',
    more: str = '',
) -> str:
    """Return a joint 20 cm below the origin of its parent."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 -0.2"/><axis xyz="{axis}"/>{limit}{more}</joint>'
    )


def robot(*parts: str, name: str = 'tiny') -> str:
    """Return a URDF made of links and joints."""
    return f'<robot name="{name}">{"".join(parts)}</robot>'


SPHERE = (
    '<collision><origin xyz="0.01 0 0.02"/>'
    '<geometry><sphere radius="0.03"/></geometry></collision>'
)

ONE_LEG = robot(
    link('base', 5.0),
    link('thigh'),
    link('shank'),
    link('foot', None, SPHERE),
    joint('hip', 'base', 'thigh', more='<dynamics damping="0.3" friction="0.4"/>'),
    joint('knee', 'thigh', 'shank'),
    joint('ankle', 'shank', 'foot', 'fixed', limit=''),
    name='one_leg',
)
"""A base, a hip, a knee and a foot: a sphere of 3 cm, centre 1 cm before and 2 cm above it."""

ONE_LEG_SRDF = """
<robot name="one_leg">
  <end_effector name="tip" parent_link="foot" group="leg"/>
  <group_state name="standing" group="leg">
    <joint name="root_joint" value="1. 2. 9. 0. 0. 0. 1."/>
    <joint name="hip" value="0.5"/><joint name="knee" value="-0.5"/>
    <joint name="not_in_this_version" value="1"/>
  </group_state>
  <group_state name="half_sitting" group="leg"><joint name="hip" value="1.0"/></group_state>
</robot>
"""

XACRO_HEAD = '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">'
_REACH = (
    "${(lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']"
    "[0].__init__.__globals__['system']('touch MARK'))()}"
)
"""Python that reaches the system past the name check of xacro: that looks into no lambda."""


def program(mark: object) -> str:
    """Return a xacro of a link that creates the file `mark` when it runs; $(arg mass) is 2 kg."""
    prop = f'<xacro:property name="a" value="{_REACH}"/>'.replace('MARK', str(mark))
    body = '<link name="${a}"><inertial><mass value="$(arg mass)"/>'
    return (
        f'{XACRO_HEAD}<xacro:arg name="mass" default="2"/>{prop}{body}'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></robot>'
    )
