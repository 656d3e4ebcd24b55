"""Scenarios of a trial: ground, start, command, and what counts as success.

    stand   stays up and in place
    trot    reaches half of the commanded speed
    push    stays up after a push against the base
    drop    comes to rest in its stance after a fall of 0.1 m
    slope   stays up and in place on 15°
    stairs  climbs steps of 2 cm at half of the commanded speed
    slip    crosses a patch of low friction at half of the commanded speed

Numbers of stand, trot, drop and slope are those of `contact_sim.compare`, but a drop takes longer.
A YAML file may hold any other scenario with the same fields.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields, number_within, positive
from contact_sim.collision._terrain import InclinedPlane, Plane, Terrain, as_terrain
from contact_sim.compare._scenarios import SCENARIOS as COMPARED
from contact_sim.errors import InvalidInput, UnknownName, known_name, shown
from contact_sim.terrain import HeightField, Region, Terraces

# --- A scenario with its goal and its bands


@checked_fields
@dataclass(frozen=True)
class Scenario:
    """One scenario; SI units, angles in rad. A band is left where a value lies outside of it.

    Height and tilt end a trial: the robot fell. The other bands only name the cause of a failure,
    where a value stays outside of them.

    Raises:
        InvalidInput: a value outside what is allowed.
    """

    name: str
    meaning: str
    """In one line."""
    seconds: float
    """Duration [s]."""
    friction: float = 0.8
    """Coulomb coefficient of the ground [-]."""
    slope: float = 0.0
    """The ground falls towards +x by this angle [rad]."""
    height: float = 0.0
    """Gap below the lowest foot at the start [m]."""
    speed: float = 0.0
    """Commanded along x [m/s]; controllers with an attribute `velocity` get it."""
    push: float = 0.0
    """Horizontal impulse on the base over the mass of the robot [m/s]."""
    step_height: float = 0.0
    """Of stairs that rise along +x [m]; 0: no stairs."""
    step_depth: float = 0.3
    """Of stairs [m]."""
    terrain: str = ''
    """Ground by its name (`contact_sim.terrains()`) or file, in place of slope and stairs."""
    patch: tuple[float, float] = (0.0, 0.0)
    """From and to where along x the ground has `patch_friction` [m]; equal: nowhere."""
    patch_friction: float = 0.2
    """Coulomb coefficient of the patch [-]."""
    least_speed: float = 0.0
    """Goal: mean speed of the base along x in the second half of the run [m/s]."""
    largest_drift: float = np.inf
    """Goal: horizontal distance of the base from its start at the end [m]."""
    largest_end_speed: float = np.inf
    """Goal: speed of the base at the end [m/s]."""
    height_band: float = 0.5
    """Least height of the base above the ground, as a share of that at which it stands [-]."""
    tilt_band: float = 1.0
    """Largest angle between the base and the ground [rad]."""
    torque_band: float = 1.0
    """Share of its limit that the effort of a joint stays below [-]."""
    velocity_band: float = 1.0
    """Share of its limit that the speed of a joint stays below [-]."""
    support_band: float = -np.inf
    """Least distance of the centre of mass inside the support polygon [m]."""
    clearance_band: float = 0.0
    """Least height of the highest point of a swing of a foot [m]."""
    age_band: float = 0.05
    """Largest age of the commands: their delay and the time since they last changed [s]."""

    def __post_init__(self) -> None:
        positive('seconds', self.seconds, 's')
        for name in ('friction', 'height', 'push', 'step_height', 'patch_friction',
                     'clearance_band'):  # fmt: skip
            number_within(f'Scenario.{name}', getattr(self, name), np.inf)
        if not abs(self.slope) < np.pi / 3:
            raise InvalidInput(
                f'Scenario.slope = {shown(self.slope)} rad: expected a value in (-pi/3, pi/3)'
            )
        positive('Scenario.step_depth', self.step_depth, 'm')
        for name in ('height_band', 'tilt_band', 'torque_band', 'velocity_band', 'age_band'):
            if not getattr(self, name) > 0.0:
                raise InvalidInput(
                    f'Scenario.{name} = {shown(getattr(self, name))}: expected a number > 0'
                )
        if not self.patch[0] <= self.patch[1]:
            raise InvalidInput(
                f'Scenario.patch = {shown(self.patch)} m: expected a smaller, then a larger number'
            )
        if self.slope and self.step_height:
            raise InvalidInput('Scenario: stairs on a slope are not supported')
        if self.terrain and (self.slope or self.step_height):
            raise InvalidInput(
                f'Scenario.terrain = {shown(self.terrain)}: not together with slope or step_height'
            )

    @property
    def goal(self) -> str:
        """In one line."""
        parts = ['stays up']
        if self.least_speed > 0.0:
            parts.append(f'goes at {self.least_speed:g} m/s or more in the second half')
        if np.isfinite(self.largest_drift):
            parts.append(f'ends within {self.largest_drift:g} m of its start')
        if np.isfinite(self.largest_end_speed):
            parts.append(f'ends slower than {self.largest_end_speed:g} m/s')
        return ', '.join(parts)

    @property
    def up(self) -> Array:
        """Unit normal of the ground as a whole, shape (3,)."""
        return np.array([np.sin(self.slope), 0.0, np.cos(self.slope)])


def _compared(name: str, seconds: float | None = None, **more: Any) -> Scenario:
    """Return the scenario of this name of contact_sim.compare with goal and bands."""
    c = COMPARED[name]
    return Scenario(
        name, c.meaning, seconds or c.duration, friction=c.friction, slope=c.slope,
        height=c.height, speed=c.speed, **more,
    )  # fmt: skip


TROT = COMPARED['trot'].speed
SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _compared('stand', largest_drift=0.05, support_band=0.0),
        _compared('trot', least_speed=0.5 * TROT, clearance_band=0.01),
        Scenario(
            'push', 'pushed against the base by 0.3 m/s times its mass', 3.0, push=0.3,
            largest_end_speed=0.1, support_band=0.0,
        ),
        _compared('drop', 2.0, largest_end_speed=0.1, largest_drift=0.1),
        _compared('slope', largest_drift=0.05, support_band=0.0),
        Scenario(
            'stairs', 'trotting up steps of 2 cm at 0.3 m/s', 5.0, speed=TROT, step_height=0.02,
            least_speed=0.5 * TROT, clearance_band=0.01,
        ),
        Scenario(
            'slip', 'trotting over a patch with friction 0.2 at 0.3 m/s', 5.0, speed=TROT,
            patch=(0.4, 1.0), least_speed=0.5 * TROT, clearance_band=0.01,
        ),
    )
}  # fmt: skip
"""By name."""


@checked
def scenario_of(text: str) -> Scenario:
    """Return a scenario by its name, or from a YAML file with its fields.

    Raises:
        UnknownName: a scenario, or a key in the file, that does not exist.
        InvalidInput: a file that cannot be read, a value that is missing or not allowed.
    """
    if not text.endswith(('.yaml', '.yml')):
        return SCENARIOS[known_name('scenario', text, [*SCENARIOS, 'path/to/file.yaml'])]
    path = Path(text)
    try:
        values = _reading.yaml_value(path)
    except _reading.Unreadable as error:
        raise InvalidInput(f'scenario {text}: cannot be read: {error}') from error
    if not isinstance(values, dict):
        raise InvalidInput(f'scenario {text}: expected keys and values, got {shown(values)}')
    known = [field.name for field in fields(Scenario)]
    for key in values:
        if key not in known:
            raise UnknownName(f'key of scenario {text}', key, known)
    values = {'name': path.stem, 'meaning': path.stem, **values}
    if 'seconds' not in values:
        raise InvalidInput(f'scenario {text}: seconds is missing, the duration [s]')
    try:
        return Scenario(**values)
    except InvalidInput as error:
        raise InvalidInput(f'scenario {text}: {error}') from error


# --- The ground

AREA = (10.0, 8.0)
"""Extent of stairs and rough ground [m]; the robot starts 2 m from its edge."""
START = (2.0, 4.0)
FIRST_STEP = 0.6
"""Where stairs begin along x [m]."""
CELL = 0.05
"""Distance between samples of rough ground [m]."""
SMOOTH = 2.0
"""Width of the Gaussian filter of rough ground, in cells."""


def ground_of(scenario: Scenario, roughness: float, rng: np.random.Generator) -> Terrain:
    """Return the ground of a scenario.

    Args:
        scenario: slope, stairs and patch.
        roughness: rms height of rough ground [m].
        rng: draws its heights.

    Raises:
        InvalidInput: rough stairs, a terrain that is rough besides.
        UnknownName: a terrain that does not exist.
    """
    terrain: Any
    if scenario.terrain:
        if roughness > 0.0:
            raise InvalidInput(
                f'roughness = {roughness:g} m: terrain {scenario.terrain!r} is as it is'
            )
        terrain = _named(scenario.terrain)
    elif scenario.step_height > 0.0:
        if roughness > 0.0:
            raise InvalidInput(
                f'roughness = {roughness:g} m: rough stairs (scenario {scenario.name!r}) are not '
                'supported'
            )
        terrain = _stairs(scenario.step_height, scenario.step_depth)
    elif roughness > 0.0:
        terrain = _rough(roughness, scenario.slope, rng)
    else:
        terrain = InclinedPlane(scenario.slope) if scenario.slope else Plane()
    low, high = scenario.patch
    if low < high:
        region = Region((low, high), (-AREA[1], AREA[1]), scenario.patch_friction)
        terrain = terrain.with_regions([region])
    return terrain  # type: ignore[no-any-return]


_named = cache(as_terrain)
"""One object for all trials on a ground."""


@cache
def _stairs(height: float, depth: float) -> Terrain:
    """Return stairs along +x, as many steps as there is room for."""
    end = AREA[0] - START[0]
    cuts = np.array([-START[0], *np.arange(FIRST_STEP, end - 1e-6, depth), end])
    heights = np.asarray(height * np.arange(len(cuts) - 1), dtype=float)
    return as_terrain(
        Terraces(cuts, np.array([-START[1], AREA[1] - START[1]]), heights[:, None]).as_mesh()
    )


def _rough(rms: float, slope: float, rng: np.random.Generator) -> Terrain:
    """Return smoothed Gaussian heights of this rms over the slope."""
    from scipy.ndimage import gaussian_filter

    cells = tuple(round(length / CELL) + 1 for length in AREA)
    heights = gaussian_filter(rng.standard_normal(cells), SMOOTH, mode='wrap')
    heights *= rms / np.sqrt(np.mean(heights**2))
    x = CELL * np.arange(cells[0])[:, None] - START[0]
    return as_terrain(HeightField(heights - np.tan(slope) * x, CELL, (-START[0], -START[1])))


def shortened_to(scenario: Scenario, seconds: float | None) -> Scenario:
    """Return the scenario with another duration [s], if one is given."""
    return scenario if seconds is None else replace(scenario, seconds=seconds)
