"""contact_sim: a simulator for legged robots whose contact physics can be compared and switched.

Imports no ROS; the ROS node lives in contact_sim.ros.
"""

from importlib.metadata import PackageNotFoundError, version

from contact_sim.collision.ground import Terrain
from contact_sim.collision.terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
)
from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.residuals import law_residuals
from contact_sim.contact_models import contact_models
from contact_sim.contact_models.hybrid.model import Hybrid
from contact_sim.contact_models.time_stepping.anitescu import Anitescu
from contact_sim.contact_models.time_stepping.compliant import Compliant
from contact_sim.contact_models.time_stepping.lcp import Lcp
from contact_sim.contact_models.time_stepping.ncp import Ncp
from contact_sim.contact_models.time_stepping.null_space import NullSpace
from contact_sim.contact_models.time_stepping.sap import Sap
from contact_sim.contact_models.time_stepping.todorov import Todorov
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    RobotDescriptionError,
    UnknownName,
)
from contact_sim.robot.catalogue import robots, textbook_systems
from contact_sim.robot.contact_point import ContactPoint
from contact_sim.robot.feet import Foot
from contact_sim.robot.joined import JoinedRobots, joined
from contact_sim.robot.loose import loose_ball, loose_box
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.snapshot import Snapshot
from contact_sim.simulation.worlds import Worlds
from contact_sim.support.analysis import Support, analyse_support

try:
    __version__ = version('contact_sim')  # written once, in package.xml
except PackageNotFoundError:  # a source tree that nobody installed
    __version__ = '0+unknown'

__all__ = [
    'Anitescu',
    'Compliant',
    'ContactPoint',
    'ContactProblem',
    'ContactSimError',
    'CylinderGround',
    'Foot',
    'Hybrid',
    'InclinedPlane',
    'InvalidInput',
    'JoinedRobots',
    'Lcp',
    'Ncp',
    'NonFiniteState',
    'NullSpace',
    'Plane',
    'Planes',
    'RobotDescriptionError',
    'RobotModel',
    'Sap',
    'Simulator',
    'Snapshot',
    'SphereGround',
    'Support',
    'Terrain',
    'Todorov',
    'UnknownName',
    'Worlds',
    '__version__',
    'analyse_support',
    'contact_models',
    'joined',
    'law_residuals',
    'load_robot',
    'loose_ball',
    'loose_box',
    'robots',
    'textbook_systems',
]
