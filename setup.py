from glob import glob
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

NAME = 'contact_sim'
SHARE = f'share/{NAME}'
MANIFEST = ElementTree.parse(Path(__file__).with_name('package.xml')).getroot()


def ros_wheels(rclpy, rmw_fastrtps_cpp, ament_index_python, common_interfaces, rcl_interfaces):
    """Return the wheels of one ROS 2 release.

    An extra, not a requirement: in a ROS installation these packages come from the distribution.
    Exact versions, because only a whole release fits together.
    """
    common = ('diagnostic', 'geometry', 'nav', 'sensor', 'std', 'trajectory', 'visualization')
    return [
        f'ros-rclpy=={rclpy}',
        f'ros-rmw-fastrtps-cpp=={rmw_fastrtps_cpp}',
        f'ros-ament-index-python=={ament_index_python}',
        *(f'ros-{name}-msgs=={common_interfaces}' for name in common),
        f'ros-std-srvs=={common_interfaces}',
        f'ros-builtin-interfaces=={rcl_interfaces}',
        f'ros-rcl-interfaces=={rcl_interfaces}',
        f'ros-rosgraph-msgs=={rcl_interfaces}',
        'ros-wheels-bootstrapper==0.1.2',
    ]


KILTED = ros_wheels('9.1.2', '9.3.3', '1.11.0', '5.5.1', '2.3.0')
JAZZY = ros_wheels('7.1.6', '8.4.3', '1.8.1', '5.3.6', '2.0.3')
ROBOTS = 'example-robot-data>=6.0'

setup(
    name=NAME,
    version=MANIFEST.findtext('version').strip(),
    description=' '.join(MANIFEST.findtext('description').split()),
    long_description=Path(__file__).with_name('README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    maintainer=MANIFEST.findtext('maintainer'),
    maintainer_email=MANIFEST.find('maintainer').get('email'),
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Topic :: Scientific/Engineering :: Physics',
    ],
    python_requires='>=3.10',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (SHARE, ['package.xml']),
        (f'{SHARE}/launch', sorted(glob('launch/*.launch.py'))),
        (f'{SHARE}/config', sorted(glob('config/*'))),
        (f'{SHARE}/urdf', sorted(glob('urdf/*.*'))),
        (f'{SHARE}/urdf/textbook', sorted(glob('urdf/textbook/*.*'))),
        # the executables of ROS: not in bin/, where their names would be everybody's
        (f'lib/{NAME}', sorted(glob('scripts/*'))),
    ],
    zip_safe=False,  # the cache of compiled kernels is keyed by the text of the sources
    # Lower bounds: what Ubuntu 24.04 has, on which ROS 2 Jazzy and Kilted run, and the
    # first Pinocchio of Jazzy that is supported; `make test-oldest` tests with them.
    install_requires=[
        'numpy>=1.26',
        'scipy>=1.11',
        'numba>=0.58',
        'pin>=3.9',
        'coal>=3.0',
        'manifold3d>=3.0',
        'xacro>=2.0',
        'PyYAML>=6.0',
        'tqdm>=4.66',
        'Pillow>=10.2',
    ],
    extras_require={
        'robots': [ROBOTS],  # of the catalogue, other than quadruped
        'ros': KILTED,
        'ros-jazzy': JAZZY,
        'demo': ['matplotlib>=3.6'],
        'meshes': ['trimesh>=4.6', 'coacd>=1.0'],  # ground from mesh files, convex parts of meshes
        'rays': ['embreex>=4.4.0'],  # lidar and depth camera over height fields and meshes
        # python -m contact_sim.view
        'view': ['viser>=1.1', 'trimesh>=4.6', 'imageio-ffmpeg>=0.5'],
        'mjcf': ['mujoco>=3.3.2'],  # reads robots described in MJCF
        'export': ['mcap>=1.2', 'pyarrow>=15.0'],  # of recordings
        # python -m contact_sim.verdict, campaigns
        'verdict': ['joblib>=1.4', 'pyarrow>=15.0', 'cma>=3.3', 'matplotlib>=3.6'],
        'policy': ['onnxruntime>=1.17'],  # controllers that others trained
        'torch': ['torch>=2.1'],  # those of them that are TorchScript; gradients
        'jax': ['jax>=0.4.34'],  # gradients
        'optimal': ['crocoddyl>=3.2'],  # examples/jump.py
        'gym': ['gymnasium>=1.0'],
        'judge': ['rosbags>=0.11'],  # python -m contact_sim.judge run.mcap
        'docs': [
            'sphinx>=8.0',
            'myst-parser>=4.0',
            'docutils>=0.22',  # formulas as MathML
            'pydata-sphinx-theme>=0.16',
            'sphinx-gallery>=0.18',
        ],
        'peers': [
            'mujoco>=3.3',
            # wheels of Drake with the contact approximations under their present names
            "drake>=1.51; python_version >= '3.11' and sys_platform == 'linux' "
            "and platform_machine == 'x86_64'",
        ],
        'test': [
            'pytest>=7.4',
            'pytest-timeout>=2.2',
            'pytest-rerunfailures>=14.0',
            'pytest-xdist>=3.7',
            'hypothesis>=6.98',
            'wheel>=0.43',
            'rosbags>=0.11',  # reads what is exported, independently
            'playwright>=1.49',  # drives the page of the viewer
            'onnx>=1.15',  # makes small policies
            'embreex>=4.4.0',
            ROBOTS,
        ],
        'colcon': ['colcon-common-extensions>=0.3'],
        # Exact: a newer formatter or checker changes its mind about code that was fine.
        'lint': ['ruff==0.17.5', 'mypy==2.4.1', 'import-linter>=2.5'],
    },
    entry_points={
        # under its own name, so that naming the module as a plugin as well does no harm
        'pytest11': ['contact_sim.testing = contact_sim.testing'],
        'console_scripts': ['contact_sim = contact_sim.__main__:main'],
    },
)
