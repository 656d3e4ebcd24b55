from glob import glob
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

NAME = 'contact_sim'
SHARE = f'share/{NAME}'
MANIFEST = ElementTree.parse(Path(__file__).with_name('package.xml')).getroot()

# ROS 2 Kilted from wheels. An extra, not a requirement: in a ROS installation these packages
# come from the distribution. Exact versions, because only a whole release fits together.
ROS_WHEELS = [
    'ros-rclpy==9.1.2',
    'ros-rmw-fastrtps-cpp==9.3.3',
    'ros-ament-index-python==1.11.0',
    'ros-builtin-interfaces==2.3.0',
    'ros-diagnostic-msgs==5.5.1',
    'ros-geometry-msgs==5.5.1',
    'ros-nav-msgs==5.5.1',
    'ros-sensor-msgs==5.5.1',
    'ros-std-msgs==5.5.1',
    'ros-std-srvs==5.5.1',
    'ros-trajectory-msgs==5.5.1',
    'ros-visualization-msgs==5.5.1',
    'ros-rcl-interfaces==2.3.0',
    'ros-rosgraph-msgs==2.3.0',
    'ros-wheels-bootstrapper==0.1.2',
]

setup(
    name=NAME,
    version=MANIFEST.findtext('version').strip(),
    description=' '.join(MANIFEST.findtext('description').split()),
    license='Apache-2.0',
    maintainer=MANIFEST.findtext('maintainer'),
    maintainer_email=MANIFEST.find('maintainer').get('email'),
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (SHARE, ['package.xml']),
        (f'{SHARE}/launch', sorted(glob('launch/*.launch.py'))),
        (f'{SHARE}/config', sorted(glob('config/*'))),
        (f'{SHARE}/urdf', sorted(glob('urdf/*'))),
    ],
    zip_safe=False,  # numba keeps compiled kernels beside the sources
    # Lower bounds: Ubuntu 24.04, on which ROS 2 Jazzy and Kilted run; tested by
    # `make test-oldest`.
    install_requires=[
        'numpy>=1.26',
        'scipy>=1.11',
        'numba>=0.58',
        'pin>=3.9',
        'xacro>=2.0',
        'PyYAML>=6.0',
        'example-robot-data>=6.0',
    ],
    extras_require={
        'ros': ROS_WHEELS,
        'demo': ['matplotlib>=3.6'],
        'peers': ['mujoco>=3.3'],
        'test': [
            'pytest>=7.4',
            'pytest-timeout>=2.2',
            'hypothesis>=6.98',
        ],
        'colcon': ['colcon-common-extensions>=0.3'],
        # Exact: a newer formatter or checker changes its mind about code that was fine.
        'lint': ['ruff==0.17.5', 'mypy==2.4.1', 'import-linter>=2.5'],
    },
    entry_points={
        'console_scripts': [
            'simulation = contact_sim.ros.simulation_node:main',
            'stance_controller = contact_sim.ros.stance_controller:main',
        ],
    },
)
