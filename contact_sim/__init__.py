"""contact_sim: a simulator for legged robots whose contact physics can be compared and switched.

Imports no ROS; the ROS node lives in contact_sim.ros.
"""

from importlib.metadata import PackageNotFoundError, version

from contact_sim import _address_space, _deprecated
from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
    Terrain,
    terrains,
)
from contact_sim.contact_models import contact_models, presets
from contact_sim.contact_models._anitescu import Anitescu
from contact_sim.contact_models._compliant import Compliant
from contact_sim.contact_models._lcp import Lcp
from contact_sim.contact_models._ncp import Ncp
from contact_sim.contact_models._null_space import NullSpace
from contact_sim.contact_models._sap import Sap
from contact_sim.contact_models._todorov import Todorov
from contact_sim.contact_models.hybrid._hybrid import Hybrid
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    RobotDescriptionError,
    UnknownName,
)
from contact_sim.robot._catalogue import robots, textbook_systems
from contact_sim.robot._contact_points import ContactPoint, Foot
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import (
    JoinedRobots,
    joined,
    loose_ball,
    loose_box,
    loose_ellipsoid,
)
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot
from contact_sim.simulation._worlds import Worlds
from contact_sim.step._problem import ContactProblem, law_residuals
from contact_sim.support._analysis import Support, analyse_support

del _address_space  # it had to be the first
_deprecated.install()

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
    'loose_ellipsoid',
    'presets',
    'robots',
    'terrains',
    'textbook_systems',
]
