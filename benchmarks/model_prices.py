"""What each contact model costs in physics, at its defaults: the numbers of docs/which_model.md.

    python benchmarks/model_prices.py [--robot go1] [--models ncp sap]
    python benchmarks/model_prices.py --docs     # and times; writes the table and docs/compare.png

depth     deepest contact of the robot at rest [µm]; rigid ground has 0
creep     fastest loaded foot at rest on a slope of 15°, friction 0.8 [mm/s]; inside the cone: 0
way       stopping distance from 1 m/s with locked joints, friction 0.4, over v²/(2 μ g) − 1
rises     how far the base rises on that way [mm]; what slides on level ground does not
rebound   speed after over speed before of a ball that lands at 1 m/s, asked for 0.5
energy    of a ball dropped from 1 m, asked for 1, after 5 s: relative change

What a step takes: benchmarks/model_time.py, which `--docs` runs as well: the table of the page
and the figure come from one run, and test/project/test_which_model.py compares the two.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pinocchio as pin
from engines import stay_on_one_core
from model_time import PEER, measure

import contact_sim
from contact_sim.compare.__main__ import draw
from contact_sim.compare._runs import ModelRun, compare
from contact_sim.compare._scenarios import GRAVITY, SCENARIOS, scenario_of, start
from contact_sim.contact_models import as_contact_model

RADIUS, HEIGHT, SPEED, SECONDS = 0.1, 1.0, 1.0, 5.0
SETTLING = 2.0
"""Seconds that a robot stands before its depth is read."""
ELASTIC, HALF = 1.0, 0.5
"""Coefficients of restitution that are asked for."""
LANDING_STEPS = 180
"""Past the fall of 102 steps and the height of the rebound, before a second landing."""
NO_EFFORT = np.zeros(0)
DOCS = Path(__file__).resolve().parents[1] / 'docs'
HEAD = '| model | step, standing |'
"""Of the table in docs/which_model.md."""
MEASURED_ON = 'measured on '
BLOCKS = 60
"""Of 100 steps each, in which a model is timed."""
DAMPED = ('null_space', 'compliant', 'todorov', 'sap')
"""Models that lose the energy of the elastic ball: `restitution` has no effect on them."""


@dataclass(frozen=True)
class Prices:
    """The physics of one model beside that of rigid ground with exact friction."""

    depth: float
    creep: float
    way: float
    rises: float
    rebound: float
    energy: float
    slide: ModelRun
    """The run of `way` and `rises`, which the figure shows."""


def ball() -> contact_sim.RobotModel:
    """Return a solid ball of 1 kg."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    inertia = pin.Inertia(1.0, np.zeros(3), 0.4 * RADIUS**2 * np.eye(3))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.addBodyFrame('body', joint, pin.SE3.Identity(), 0)
    point = contact_sim.ContactPoint('ball', 'body', 'root_joint', np.zeros(3), RADIUS)
    return contact_sim.RobotModel.from_pinocchio(model, [point], name='ball')


def falling(model: str, height: float, restitution: float) -> contact_sim.Simulator:
    """Return the ball at rest, `height` [m] above the ground."""
    sim = contact_sim.Simulator(ball(), model, restitution=restitution, gravity=GRAVITY)
    sim.reset([0.0, 0.0, RADIUS + height, 0.0, 0.0, 0.0, 1.0])
    return sim


def rebound(model: str) -> float:
    """Return the speed after the first landing over that before, both at the ground."""
    sim = falling(model, SPEED**2 / (2.0 * GRAVITY), HALF)
    reports = [sim.step(NO_EFFORT) for _ in range(LANDING_STEPS)]
    landing = int(np.argmin([report.v[2] for report in reports]))
    # on its way up, its height counts as the speed that it had below
    squares = [
        report.v[2] ** 2 + 2.0 * GRAVITY * max(0.0, report.q[2] - RADIUS)
        for report in reports[landing + 1 :]
        if report.v[2] > 0.0
    ]
    return float(np.sqrt(max(squares, default=0.0))) / SPEED


def kept_energy(model: str) -> float:
    """Return the relative change of energy of an elastic ball over five seconds."""
    sim = falling(model, HEIGHT, ELASTIC)
    for _ in range(round(SECONDS / sim.time_step)):
        report = sim.step(NO_EFFORT)
    kinetic = 0.5 * float(report.v[:3] @ report.v[:3])
    return (kinetic + GRAVITY * (float(report.q[2]) - RADIUS)) / (GRAVITY * HEIGHT) - 1.0


def depth(robot: contact_sim.RobotModel, model: str) -> float:
    """Return the depth of the deepest contact of a robot that stands [µm]."""
    scenario = replace(SCENARIOS['stand'], duration=SETTLING)
    begin = start(scenario, robot, as_contact_model(model), 1e-3)
    for _ in range(round(SETTLING / 1e-3)):
        report = begin.sim.step(begin.controller(begin.sim.time, begin.sim.q, begin.sim.v))
    return 1e6 * max(0.0, -float(report.contacts.gap.min()))


def slide(robot: contact_sim.RobotModel, model: str) -> tuple[float, float, ModelRun]:
    """Return the error of the stopping distance, how far the base rises [mm], and the run."""
    scenario = scenario_of('slide')
    (run,) = compare(robot, scenario, [model])
    standing = float(robot.reference_configuration('standing')[2])
    rises = 1e3 * (max(run.trace.height) - standing)
    return run.headline(scenario) / scenario.expected() - 1.0, max(0.0, rises), run


def prices(robot: contact_sim.RobotModel, model: str) -> Prices:
    """Return everything about one model."""
    slope = scenario_of('slope')
    (run,) = compare(robot, slope, [model])
    way, rises, sliding = slide(robot, model)
    return Prices(
        depth(robot, model), run.headline(slope), way, rises, rebound(model), kept_energy(model),
        sliding,
    )  # fmt: skip


# -------------------------------------------------------------------- the page and its figure


def number(value: float, digits: int, smallest: float) -> str:
    """Return so many significant digits, 0 below what counts."""
    return '0' if abs(value) < smallest else f'{float(f"{value:.{digits}g}"):g}'


def percent(value: float, smallest: float = 5e-5) -> str:
    """Return a relative error with its sign: −0.39 %."""
    text = f'{100.0 * value:+.2f}'.removesuffix('.00')
    return '0 %' if abs(value) < smallest else f'{text.replace("-", "−")} %'


def ratio(value: float) -> str:
    """Return a time over that of ncp."""
    return '1' if value == 1.0 else f'{value:.2f}' if value < 9.995 else f'{value:.1f}'


def row(model: str, one: Prices, times: Mapping[str, Mapping[str, float]]) -> str:
    """Return the line of a model in the table of the page."""
    cells = [
        *(ratio(found[model] / found['ncp']) for found in times.values()),
        number(one.depth, 3, 0.1), number(one.creep, 3, 1e-3), percent(one.way),
        number(one.rises, 3, 0.1), '0' if one.rebound < 1e-3 else f'{one.rebound:.3f}',
        '—' if model in DAMPED else percent(one.energy),
    ]  # fmt: skip
    return f'| `{model}` | ' + ' | '.join(cells) + ' |'


def write_docs(found: Mapping[str, Prices], times: Mapping[str, Mapping[str, float]]) -> None:
    """Write the rows of the table in the page, and the figure of the same slides.

    Args:
        found: by model.
        times: of a step [µs] by motion, standing first, and by model or MuJoCo.
    """
    lines = [row(model, one, times) for model, one in found.items()]
    peer = [ratio(of[PEER] / of['ncp']) for of in times.values() if PEER in of]
    if peer:
        lines.append(f'| {PEER} | ' + ' | '.join(peer) + ' | as `todorov` | | | | | |')
    page = DOCS / 'which_model.md'
    before, head, rest = page.read_text(encoding='utf-8').partition(HEAD)
    rule, _, after = rest.partition('\n\n')
    kept = rule.split('\n')[:2]
    text = before + head + '\n'.join([*kept, *lines]) + '\n\n' + after
    dated = re.sub(MEASURED_ON + r'\d{4}-\d\d-\d\d', f'{MEASURED_ON}{date.today()}', text)
    page.write_text(dated, encoding='utf-8')
    standing = next(iter(times.values()))  # the times of the figure are those of the table
    runs = [
        replace(one.slide, measures=replace(one.slide.measures, step_time=standing[model]))
        for model, one in found.items()
    ]
    draw(
        scenario_of('slide'), runs, contact_sim.load_robot('go1'),
        {'robot': 'go1', 'time_step': 1e-3}, DOCS / 'compare.png', 'ncp',
        'step, standing,\nncp is 1',
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    models = contact_sim.contact_models()
    parser.add_argument('--models', nargs='+', choices=models, default=list(models))
    parser.add_argument(
        '--docs', action='store_true', help='all models of go1, with times, into docs'
    )
    options = parser.parse_args()
    if options.docs:
        options.robot, options.models = 'go1', list(models)
    robot = contact_sim.load_robot(options.robot)
    found = {}
    print(f'{"model":12}{"depth µm":>10}{"creep mm/s":>12}{"way":>10}{"rises mm":>10}'
          f'{"rebound":>9}{"energy":>10}')  # fmt: skip
    for model in options.models:
        one = found[model] = prices(robot, model)
        print(f'{model:12}{one.depth:10.3g}{one.creep:12.3g}{one.way:+10.2%}{one.rises:10.3g}'
              f'{one.rebound:9.3f}{one.energy:+10.2%}')  # fmt: skip
    if options.docs:
        stay_on_one_core(None)
        times = {
            motion: {
                name: figures['median']
                for name, figures in measure(robot, motion, options.models, BLOCKS).items()
            }
            for motion in ('stand', 'trot')
        }
        write_docs(found, times)


if __name__ == '__main__':
    main()
