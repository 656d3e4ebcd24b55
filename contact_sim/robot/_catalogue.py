"""Catalogue of robots by name: their files and additional data.

Robots, and the systems of examples/textbook, whose files are in our urdf/textbook. All robots but
'quadruped' and 'four_bar_quadruped' come with the pip package example-robot-data (the extra
`robots`), or with the ROS package example_robot_descriptions (called example-robot-data before
version 6).

The contact sphere of a foot is read from the URDF's collision geometry, unless the foot is a mesh
there: then it is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contact_sim.errors import RobotDescriptionError, folded
from contact_sim.robot._collision_pairs import Solid
from contact_sim.robot._contact_points import Sphere
from contact_sim.robot._files import share_folders, share_path

FAVOURITE = 'go1'
"""The default robot, where its files are installed."""
_DATA_PACKAGES = ('example-robot-data', 'example_robot_descriptions', 'example_robot_data')
_UNITREE_FEET = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
_ANYMAL_FEET = ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT')
_SOLO_FEET = ('FL_FOOT', 'FR_FOOT', 'HL_FOOT', 'HR_FOOT')
_HYQ_FEET = ('lf_foot', 'rf_foot', 'lh_foot', 'rh_foot')
_ENDS = ('lower_end', 'upper_end')


@dataclass(frozen=True)
class CatalogueEntry:
    """A robot or a system of the textbook."""

    urdf: str
    """Path of the URDF or xacro below robots/ of the data package, or in our urdf/."""
    feet: tuple[str, ...] = ()
    """Frames of the feet, in the order of robot.contact_points."""
    srdf: str | None = None
    """Path of the SRDF with the poses, from the same folder as `urdf`."""
    ours: bool = False
    """True for a robot in our own urdf/ folder."""
    foot: Sphere | None = None
    """Contact sphere in the frame of every foot; None: the one in the URDF."""
    standing: Mapping[str, float] = field(default_factory=dict)
    """Standing joints [rad or m] by the end of the joint's name, for those without an SRDF."""
    corrections: tuple[tuple[str, str], ...] = ()
    """Pairs (wrong, right) to replace in the text of the URDF: defects of the published file."""
    floating_base: bool = True
    """False: the root link is fixed to the world."""
    actuated_joints: tuple[str, ...] | None = None
    """Driven joints; None: all with one degree of freedom."""
    solids: tuple[Solid, ...] = ()
    """What touches the ground besides the feet, in place of collision geometry of the URDF."""


_ROBOTS: dict[str, CatalogueEntry] = {
    'a1': CatalogueEntry(
        'a1_description/urdf/a1.urdf', _UNITREE_FEET, 'a1_description/srdf/a1.srdf'
    ),
    'go1': CatalogueEntry(
        'go1_description/urdf/go1.urdf', _UNITREE_FEET, 'go1_description/srdf/go1.srdf'
    ),
    'go2': CatalogueEntry(
        'go2_description/urdf/go2.urdf',
        _UNITREE_FEET,
        'go2_description/srdf/go2.srdf',
        # the sphere that go2's MuJoCo model has; from the mesh it is 0.6 mm away on average
        foot=Sphere((-0.002, 0.0, 0.0), 0.022),
    ),
    'b1': CatalogueEntry(
        'b1_description/urdf/b1.urdf',
        _UNITREE_FEET,
        'b1_description/srdf/b1.srdf',
        corrections=(
            ('package://b1_description/', 'package://example-robot-data/robots/b1_description/'),
        ),
    ),
    'laikago': CatalogueEntry(
        'laikago_description/urdf/laikago.urdf',
        _UNITREE_FEET,
        standing={'_hip_joint': 0.0, '_thigh_joint': 0.67, '_calf_joint': -1.25},
    ),
    'anymal_b': CatalogueEntry(
        'anymal_b_simple_description/robots/anymal.urdf',
        _ANYMAL_FEET,
        'anymal_b_simple_description/srdf/anymal.srdf',
    ),
    'anymal_c': CatalogueEntry(
        'anymal_c_simple_description/urdf/anymal.urdf',
        _ANYMAL_FEET,
        'anymal_c_simple_description/srdf/anymal.srdf',
    ),
    # the effort limit of 1000 N m in solo's URDFs is none in practice: its motors give 2.7 N m
    'solo8': CatalogueEntry(
        'solo_description/robots/solo.urdf',
        _SOLO_FEET,
        'solo_description/srdf/solo.srdf',
        foot=Sphere((0.0, 0.0, 0.0), 0.016),  # mesh of a disc around the frame's y axis
    ),
    'solo12': CatalogueEntry(
        'solo_description/robots/solo12.urdf',
        _SOLO_FEET,
        'solo_description/srdf/solo.srdf',
        foot=Sphere((0.0, 0.0, 0.0), 0.016),
    ),
    'hyq': CatalogueEntry(
        'hyq_description/robots/hyq_no_sensors.urdf', _HYQ_FEET, 'hyq_description/srdf/hyq.srdf'
    ),
    'quadruped': CatalogueEntry('quadruped.urdf.xacro', _ANYMAL_FEET, 'quadruped.srdf', ours=True),
    'four_bar_quadruped': CatalogueEntry(
        'four_bar_quadruped.urdf.xacro', _ANYMAL_FEET, 'four_bar_quadruped.srdf', ours=True
    ),
}


def _system(name: str, **values: Any) -> CatalogueEntry:
    """Return the entry of a system of the textbook; its root link is fixed by default."""
    return CatalogueEntry(
        f'textbook/{name}.urdf', **{'ours': True, 'floating_base': False} | values
    )


def _voussoirs(count: int) -> tuple[Solid, ...]:
    """Return the blocks of an arch, each about its centre of mass, z away from the middle."""
    inner, outer, depth = 0.20026884056068295, 0.24477302735194587, 0.1  # half sizes [m]
    low, high = -0.10074255092545514, 0.09424303151090974
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    ends = ((inner, -half), (outer, half))
    corners = tuple((s * x, y, z) for x, z in ends for y in (-depth, depth) for s in (-1, 1))
    return tuple(
        Solid(
            f'block_{k}_0',
            f'block_{k}',
            f'place_{k}',
            (outer, depth, half),
            centre=(0.0, 0.0, middle),
            corners=corners,
        )
        for k in range(count)
    )


_SYSTEMS: dict[str, CatalogueEntry] = {
    'arch': _system('arch', actuated_joints=(), solids=_voussoirs(7)),
    'bead': _system('bead', actuated_joints=(), standing={'x': 1.0}),
    'bouncing_ball': _system('bouncing_ball', feet=('ball',), floating_base=True),
    'box_on_corners': _system(
        'box_on_corners', feet=('rear_corner', 'front_corner'), floating_base=True
    ),
    'box_on_slope': _system('box_on_slope', feet=('box',), floating_base=True),
    'box_stack': _system('box_stack', feet=('box_0',), actuated_joints=()),
    'cart_and_wall': _system('cart_and_wall', feet=('buffer',), standing={'x': 0.5}),
    'cart_pendulum': _system(
        'cart_pendulum', feet=('P',), actuated_joints=('swing',), standing={'swing': 0.6}
    ),
    'compliant_feet': _system(
        'compliant_feet', feet=('left_foot', 'right_foot'), actuated_joints=()
    ),
    'double_pendulum': _system('double_pendulum', standing={'q1': 0.3, 'q2': -0.7}),
    'falling_rod': _system('falling_rod', feet=_ENDS, floating_base=True),
    'five_link_chain': _system('five_link_chain', actuated_joints=()),
    'four_bar': _system(
        'four_bar',
        actuated_joints=(),
        standing={'crank': 1.2, 'coupler': -0.92658611, 'rocker': 1.37755106},
    ),
    'leaning_planks': _system(
        'leaning_planks', feet=('left_foot', 'right_foot'), actuated_joints=()
    ),
    'newtons_cradle': _system('newtons_cradle', actuated_joints=(), standing={'hinge_1': -0.5}),
    'painleve_rod': _system('painleve_rod', feet=_ENDS, floating_base=True),
    'pizza_saver': _system(
        'pizza_saver', feet=('leg_0', 'leg_1', 'leg_2'), actuated_joints=('turn',)
    ),
    'rattleback': _system(
        'rattleback',
        floating_base=True,
        solids=(
            Solid(
                'rattleback_0',
                'rattleback',
                'root_joint',
                (0.2, 0.03, 0.02),
                ellipsoid=(0.2, 0.03, 0.02),
            ),
        ),
    ),
    'rolling_disc': _system(
        'rolling_disc',
        floating_base=True,
        solids=(Solid('disc_0', 'disc', 'root_joint', (0.1, 0.1, 0.001), cylinder=(0.1, 0.001)),),
    ),
    'rolling_sphere': _system('rolling_sphere', feet=('ball',), floating_base=True),
    'sliding_brick': _system('sliding_brick', feet=('brick',), floating_base=True),
    'tipping_box': _system('tipping_box', feet=('box',), floating_base=True),
    'two_blocks': _system('two_blocks', actuated_joints=()),
    'two_bodies': _system('two_bodies'),
}
CATALOGUE = _ROBOTS | _SYSTEMS


def robots() -> tuple[str, ...]:
    """Return the names of the legged robots that `load_robot` knows."""
    return tuple(_ROBOTS)


def textbook_systems() -> tuple[str, ...]:
    """Return the names of the systems of the textbook that `load_robot` knows."""
    return tuple(_SYSTEMS)


def default_robot() -> str:
    """Return the name of the default robot: go1 if its files are installed, else quadruped."""
    entry = _ROBOTS[FAVOURITE]
    here = any((folder / 'robots' / entry.urdf).is_file() for folder in _data_folders())
    return FAVOURITE if here else next(name for name in _ROBOTS if _ROBOTS[name].ours)


def in_catalogue(name: object) -> bool:
    """Return whether this is the name of a robot or of a system of the textbook."""
    return isinstance(name, str) and any(folded(name) == folded(known) for known in CATALOGUE)


def robot_file(entry: CatalogueEntry, path: str) -> Path:
    """Return where a file of `entry` (its urdf or srdf) is on this machine."""
    if entry.ours:
        return share_path('urdf', path)
    folders = _data_folders()
    files = [folder / 'robots' / path for folder in folders]
    file = next((file for file in files if file.is_file()), None)
    if file is not None:
        return file
    if folders:
        listed = ', '.join(str(folder) for folder in folders)
        raise RobotDescriptionError(
            f'no file robots/{path} in {listed}: this version of example-robot-data does not have '
            'the robot; pip install --upgrade example-robot-data'
        )
    searched = ', '.join(str(folder) for folder in share_folders())
    raise RobotDescriptionError(
        f'the robot files ({path}) are not installed; searched in {searched or "no folder"}. '
        'pip install example-robot-data, or install the ROS package example_robot_descriptions '
        "(example-robot-data before version 6); 'quadruped' comes with contact_sim"
    )


def _data_folders() -> list[Path]:
    folders = (folder / name for folder in share_folders() for name in _DATA_PACKAGES)
    return [folder for folder in folders if (folder / 'robots').is_dir()]
