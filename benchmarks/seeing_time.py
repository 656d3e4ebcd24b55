"""Time of height scans and of a lidar, next to MuJoCo's rays on the same ground.

    python benchmarks/seeing_time.py [--json FILE]

scan     `ScanGrid.below` of one robot: 187 points around it (17 x 11)
worlds   `Worlds.height_scan` of 64 robots, per robot
mj_ray   187 vertical rays of MuJoCo, one call of `mj_ray` each: they have different origins
multi    `mj_multiRay`, 187 rays that fan out from one origin down to the same points
lidar    5 760 rays (16 x 360) of `RayScene` from one robot, ground and links, per ray
mj_lidar the same rays with `mj_multiRay`, per ray

MuJoCo sees the ground alone in scans (`geomgroup`), ground and links with the lidar. Medians of
wall times over calls that alternate [µs]. The largest difference of the distances stands beside.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engines import HAVE_MUJOCO, write_json
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, Worlds, load_robot
from contact_sim.collision._terrain import MeshGround, as_terrain
from contact_sim.sensors import Lidar, RayScene
from contact_sim.terrain import HeightField, ScanGrid

Array = NDArray[np.float64]
WORLDS, CALLS, EXTENT = 64, 30, 6.0


def field() -> HeightField:
    """Return a rough field of 121 x 121 heights."""
    heights = np.random.default_rng(0).uniform(0.0, 0.1, (121, 121))
    return HeightField(heights, 2.0 * EXTENT / 120, (-EXTENT, -EXTENT))


def median(*functions: Callable[[], Any]) -> list[float]:
    """Return the median times of functions that are called in turn [µs]."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(CALLS):
        for own, function in zip(times, functions, strict=True):
            begin = time.perf_counter()
            function()
            own.append(1e6 * (time.perf_counter() - begin))
    return [statistics.median(own) for own in times]


class MujocoGround:
    """The same ground in MuJoCo, with the boxes, spheres and cylinders of a robot."""

    def __init__(self, name: str, robot: RobotModel, scene: RayScene, q: Array) -> None:
        import mujoco
        import pinocchio as pin

        self._mujoco = mujoco
        spec = mujoco.MjSpec()
        kinds = mujoco.mjtGeom
        if name == 'plane':
            spec.worldbody.add_geom(type=kinds.mjGEOM_PLANE, size=[0, 0, 1])
        elif name == 'field':
            ground = field()
            heights = np.asarray(ground.heights)
            rows, columns = heights.shape[1], heights.shape[0]
            spec.add_hfield(
                name='ground', nrow=rows, ncol=columns, size=[EXTENT, EXTENT, heights.max(), 0.01],
                userdata=heights.T.ravel().tolist(),
            )  # fmt: skip
            spec.worldbody.add_geom(type=kinds.mjGEOM_HFIELD, hfieldname='ground')
        else:
            ground_mesh = as_terrain(name)
            assert isinstance(ground_mesh, MeshGround)
            mesh = ground_mesh.mesh
            spec.add_mesh(
                name='ground', uservert=mesh.vertices.ravel().tolist(),
                userface=mesh.triangles.ravel().tolist(),
                inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
            )  # fmt: skip
            spec.worldbody.add_geom(type=kinds.mjGEOM_MESH, meshname='ground')
        data = robot.pinocchio_model.createData()
        pin.forwardKinematics(robot.pinocchio_model, data, q)
        for body in scene._bodies:
            placed = data.oMi[body.joint] * body.placement
            quaternion = pin.Quaternion(placed.rotation).coeffs()
            spec.worldbody.add_geom(
                type=getattr(kinds, f'mjGEOM_{body.kind.upper()}'), group=1,
                size=[*body.sizes, 0, 0][:3], pos=placed.translation,
                quat=np.roll(quaternion, 1),
            )  # fmt: skip
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        mujoco.mj_forward(self._model, self._data)
        self._ground = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)

    def vertical(self, begin: Array) -> Array:
        """Return the distances of vertical rays to the ground, one call each."""
        way, geom = np.array([0.0, 0.0, -1.0]), np.zeros(1, dtype=np.int32)
        cast, model, data = self._mujoco.mj_ray, self._model, self._data
        return np.array([cast(model, data, one, way, self._ground, 1, -1, geom) for one in begin])

    def fan(self, begin: Array, ways: Array, all_groups: bool) -> Array:
        """Return the distances of rays (n, 3) from one origin."""
        n = len(ways)
        distance, geom = np.zeros(n), np.zeros(n, dtype=np.int32)
        group = None if all_groups else self._ground
        self._mujoco.mj_multiRay(
            self._model, self._data, begin, ways.ravel(), group, 1, -1, geom, distance, None, n,
            1e3,
        )  # fmt: skip
        return np.where(distance < 0.0, np.inf, distance)


def measured(name: str, robot: RobotModel) -> dict[str, float]:
    """Return the times of one ground [µs] and the largest differences [m]."""
    terrain = field() if name == 'field' else name
    sim = Simulator(robot, terrain=terrain)
    worlds, grid = Worlds(robot, WORLDS, terrain=terrain), ScanGrid()
    report, lidar = sim.last_report, Lidar(robot, sim.terrain)
    hidden = [
        frame.name
        for frame in robot.pinocchio_model.frames
        if frame.parentJoint == 1 and frame.type.name == 'BODY'
    ]
    scene = RayScene(robot, sim.terrain, hidden)
    place = sim.q[None, :3]
    ways = np.ascontiguousarray(lidar.directions.reshape(-1, 3))
    functions: dict[str, Callable[[], Any]] = {
        'scan': lambda: grid.below(sim.terrain, place, [0.0]),
        'worlds': worlds.height_scan,
        'lidar': lambda: scene.cast(report.q, place[0], ways, 100.0),
    }
    row: dict[str, float] = {}
    if HAVE_MUJOCO:
        peer = MujocoGround(name, robot, scene, sim.q)
        begin = np.column_stack([
            grid.around(place, [0.0])[0], np.full(len(grid), place[0, 2])
        ])  # fmt: skip
        ground = begin - [0.0, 0.0, 1.0]
        down = ground - place[0]
        down /= np.linalg.norm(down, axis=1)[:, None]
        functions |= {
            'mj_ray': lambda: peer.vertical(begin),
            'multi': lambda: peer.fan(place[0], down, False),
            'mj_lidar': lambda: peer.fan(place[0], ways, True),
        }
        ours, theirs = functions['scan']()[0], functions['mj_ray']()
        row['scan_difference'] = float(np.abs(ours - theirs).max())
        seen, other = functions['lidar']().distance, functions['mj_lidar']()
        both = np.isfinite(seen) & (other < 100.0)
        row['lidar_difference'] = float(np.abs(seen[both] - other[both]).max())
        row['lidar_disagree'] = float(np.mean(np.isfinite(seen) != (other < 100.0)))
    for function in functions.values():
        function()
    times = dict(zip(functions, median(*functions.values()), strict=True))
    times['worlds'] /= WORLDS
    for key in ('lidar', 'mj_lidar'):
        if key in times:
            times[key] /= len(ways)
    return times | row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    robot, rows = load_robot('go1'), {}
    for name in ('plane', 'field', 'stairs'):
        rows[name] = measured(name, robot)
        print(f'{name:8}', '  '.join(f'{key} {value:.3g}' for key, value in rows[name].items()))
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
