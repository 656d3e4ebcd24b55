"""A robot trots as fast as cmd_vel says: the simulation in lockstep with the trot controller.

ros2 launch contact_sim trot_demo.launch.py robot:=anymal_b rviz:=true
ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.3}, angular: {z: 0.3}}'
"""

from launch import LaunchContext, LaunchDescription

from contact_sim.robot._files import share_path
from contact_sim.ros.launching import DEMO_ARGUMENTS, controlled_simulation, launch_description

ARGUMENTS = DEMO_ARGUMENTS
"""Launch argument: default, description."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, the simulation and its controller."""
    return launch_description(ARGUMENTS, parts)


def parts(context: LaunchContext) -> list[object]:
    """Return the simulation and the controller; the arguments have their values now."""
    lockstep = {'params_file': str(share_path('config', 'trot_demo.yaml'))}
    return controlled_simulation(context, 'trot_controller', arguments=lockstep)
