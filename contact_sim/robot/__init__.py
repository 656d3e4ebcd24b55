"""Robots: from a URDF to a RobotModel with contact points, actuators, gains and poses."""

from contact_sim._deprecated import renamed
from contact_sim.robot._actuators import Actuators, JointCommand, holding
from contact_sim.robot._catalogue import default_robot, robots, textbook_systems
from contact_sim.robot._collision_pairs import Collisions, Solid
from contact_sim.robot._constraints import ClosedLoops
from contact_sim.robot._contact_points import Approximation, ContactPoint, Foot
from contact_sim.robot._coordinates import JointSpring, PositionLimit
from contact_sim.robot._files import mesh_prefixes, share_path, xacro_arguments
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import (
    JoinedRobots,
    RobotPart,
    joined,
    loose_ball,
    loose_box,
    loose_ellipsoid,
    parts_of,
)

__all__ = [
    'Actuators',
    'Approximation',
    'ClosedLoops',
    'Collisions',
    'ContactPoint',
    'Foot',
    'JoinedRobots',
    'JointCommand',
    'JointSpring',
    'PositionLimit',
    'RobotModel',
    'RobotPart',
    'Solid',
    'default_robot',
    'holding',
    'joined',
    'load_robot',
    'loose_ball',
    'loose_box',
    'loose_ellipsoid',
    'mesh_prefixes',
    'parts_of',
    'robots',
    'share_path',
    'textbook_systems',
    'xacro_arguments',
]

__getattr__ = renamed('robot')
