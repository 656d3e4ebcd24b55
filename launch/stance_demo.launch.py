"""A robot holds still, squats or sways: the simulation and the stance controller.

ros2 launch contact_sim stance_demo.launch.py robot:=anymal_b motion:=sway rviz:=true
ros2 launch contact_sim stance_demo.launch.py robots:='a=go1 b=anymal_b@1.5,0,0.3' motion:=squat
"""

from launch import LaunchContext, LaunchDescription

from contact_sim.ros.launching import DEMO_ARGUMENTS, controlled_simulation, launch_description

ARGUMENTS = {
    **DEMO_ARGUMENTS,
    'motion': ('sway', 'what the base does: hold, squat or sway'),
    'amplitude': ('0.03', 'of the motion [m]'),
    'frequency': ('0.5', 'of the motion [Hz]'),
}
"""Launch argument: default, description."""


def generate_launch_description() -> LaunchDescription:
    """Return the declared arguments, the simulation and its controller."""
    return launch_description(ARGUMENTS, parts)


def parts(context: LaunchContext) -> list[object]:
    """Return the simulation and the controller; the arguments have their values now."""
    values = context.launch_configurations
    motion = {
        'motion': values['motion'],
        'amplitude': float(values['amplitude']),
        'frequency': float(values['frequency']),
    }
    return controlled_simulation(context, 'stance_controller', motion)
