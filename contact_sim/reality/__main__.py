"""`python -m contact_sim.reality`: how far each contact law is from measured motions."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from contact_sim._command_line import parser_with_examples
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.reality._benchmark import Effort, Outcome, Ranking, outcomes_of, split
from contact_sim.reality._cassie import LandingExperiment, cassie
from contact_sim.reality._data_sets import (
    SOURCES,
    fetch,
    read_landings,
    read_planar_impacts,
    read_tosses,
)
from contact_sim.reality._experiments import (
    GRAVITY,
    Experiment,
    ImpactExperiment,
    TossExperiment,
)
from contact_sim.reality._facts import (
    best_of_all,
    impact_facts,
    landing_facts,
    start_noise,
)
from contact_sim.reality._laws import laws
from contact_sim.reality._page import write
from contact_sim.reality._peers import PRESETS_OF, peer_outcome

EXPERIMENTS = {
    'cube_tosses': (30, 0.18, Effort(generations=7)),
    'planar_impacts': (80, 0.18, Effort(generations=7)),
    'cassie_landings': (10, 0.8, Effort(generations=7)),
}
"""Name of each experiment: training trials, μ of laws at their defaults, effort of the fits."""
FACT_TRIALS = 60
"""Trials behind the fact that needs simulations."""
ABOUT_DATA = """
Data sets are fetched with git into the cache of the user, or named with --data. A run that was
interrupted continues with the next law. Sources and licences:
""" + '\n'.join(f'  {one.name:16} {one.address} ({one.licence})' for one in SOURCES.values())


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = parser_with_examples(
        'python -m contact_sim.reality',
        'Fit every contact law to the same measured motions, rank the laws on held-out ones, and '
        'write tables and figures.',
        (
            'cube_tosses --training 10',
            'cube_tosses --data cube_tosses=contact-nets/data/tosses_processed',
            'cassie_landings --data cassie_urdf=dairlib/examples/Cassie/urdf',
        ),
        ABOUT_DATA,
    )
    add = result.add_argument
    add('experiments', nargs='*', metavar='EXPERIMENT', help=', '.join(EXPERIMENTS))
    add('--data', nargs='+', default=[], metavar='NAME=FOLDER', help='folders of data sets')
    add('--laws', nargs='+', metavar='LAW', help='only these; default: all')
    add('--training', type=int, metavar='N', help='trials for the fits')
    add('--trials', type=int, metavar='N', help='use only so many trials, evenly spread')
    add('--no-peers', action='store_true', help='without MuJoCo and Drake')
    add('--threads', type=int, help='default: all cores')
    add('--out', type=Path, default=Path('out/reality'), metavar='FOLDER')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 with one line of reason where it cannot be done."""
    options = parser().parse_args(arguments)
    try:
        places = dict(_named_folder(text) for text in options.data)
        for name in options.experiments or EXPERIMENTS:
            if name not in EXPERIMENTS:
                raise UnknownName('experiment', name, EXPERIMENTS)
            run(name, places, options)
    except (ContactSimError, ImportError, OSError) as error:
        print(f'python -m contact_sim.reality: {error}', file=sys.stderr)
        return 1
    return 0


def _named_folder(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition('=')
    if not equals or name not in SOURCES:
        raise InvalidInput(f'--data {text!r}: expected NAME=FOLDER, NAME of {", ".join(SOURCES)}')
    return name, Path(folder)


def experiment_of(
    name: str, places: dict[str, Path], trials: int | None, threads: int | None
) -> Experiment:
    """Return an experiment with its data, fetched where no folder is named."""

    def place(source: str) -> Path:
        return places[source] if source in places else fetch(source)

    def some(count: int) -> list[int]:
        return list(split(count, trials)[0]) if trials else list(range(count))

    if name == 'cube_tosses':
        tosses = read_tosses(place('cube_tosses'))
        return TossExperiment([tosses[i] for i in some(len(tosses))], threads=threads)
    if name == 'planar_impacts':
        impacts = read_planar_impacts(place('planar_impacts'))
        rows = some(len(impacts.angle))
        chosen = replace(
            impacts, angle=impacts.angle[rows], before=impacts.before[rows],
            after=impacts.after[rows],
        )  # fmt: skip
        return ImpactExperiment(chosen, threads=threads)
    landings = read_landings(place('cassie_landings'))
    robot = cassie(place('cassie_urdf') / 'cassie_v2.urdf')
    return LandingExperiment([landings[i] for i in some(len(landings))], robot, threads=threads)


def run(name: str, places: dict[str, Path], options: argparse.Namespace) -> None:
    """Rank the laws of one experiment, print each outcome, and write table and figure."""
    training, friction, effort = EXPERIMENTS[name]
    experiment = experiment_of(name, places, options.trials, options.threads)
    parts = split(len(experiment), options.training or training)
    path = options.out / f'{name}.json'
    ranking = Ranking(name, experiment.title, experiment.measures, *parts, ())
    if path.exists():
        before = Ranking.load(path)
        if (before.training, before.held_out) == parts:
            ranking = before
    weight = experiment.robot.total_mass * GRAVITY
    chosen = [
        law for law in laws(weight, 2.0 * experiment.time_step)
        if not options.laws or law.name in options.laws
    ]  # fmt: skip
    for law in sorted(chosen, key=lambda law: law.model == 'hybrid'):  # the slowest one last
        if any(one.name == law.name and not one.peer for one in ranking.outcomes):
            continue
        pair = outcomes_of(experiment, law, *parts, friction, effort)
        ranking = replace(ranking, outcomes=(*ranking.outcomes, *pair))
        ranking.save(path)
        for one in pair:
            _show(one)
    if isinstance(experiment, TossExperiment) and not options.no_peers:
        ranking = with_peers(experiment, ranking, friction)
    ranking = replace(ranking, facts=facts_of(experiment, ranking))
    ranking.save(path)
    for file in write(ranking, options.out):
        print(file)


def with_peers(experiment: TossExperiment, ranking: Ranking, friction: float) -> Ranking:
    """Return the ranking with the engines that are installed, at their defaults and fitted."""
    laws_by_name = {one.name: one for one in ranking.outcomes if one.fitted and not one.peer}
    for peer, law in PRESETS_OF.items():
        if law not in laws_by_name or any(o.peer and o.name == peer for o in ranking.outcomes):
            continue
        for values, fitted in (({'friction': friction}, False), (laws_by_name[law].values, True)):
            try:
                outcome = peer_outcome(peer, experiment, ranking.held_out, dict(values), fitted)
            except ImportError as error:
                print(f'{peer}: not installed ({error})', file=sys.stderr)
                break
            ranking = replace(ranking, outcomes=(*ranking.outcomes, outcome))
            _show(outcome)
    return ranking


def facts_of(experiment: Experiment, ranking: Ranking) -> dict[str, float]:
    """Return what the data show beside the laws."""
    best = ranking.fitted()[0]
    named = {
        law.name: law
        for law in laws(experiment.robot.total_mass * GRAVITY, 2.0 * experiment.time_step)
    }
    candidate = named[best.name].candidate(list(best.values.values()))
    facts = {'best_law_of_each_trial': best_of_all(ranking)}
    if isinstance(experiment, TossExperiment):
        trials = list(ranking.held_out)[:: max(1, len(ranking.held_out) // FACT_TRIALS)]
        facts['start_noise'] = start_noise(experiment, candidate, trials)
    elif isinstance(experiment, ImpactExperiment):
        facts |= impact_facts(experiment.impacts)
    elif isinstance(experiment, LandingExperiment):
        facts |= landing_facts(experiment, candidate)
    return facts


def _show(outcome: Outcome) -> None:
    values = ', '.join(f'{name} {value:.4g}' for name, value in outcome.values.items())
    kind = ('fitted' if outcome.fitted else 'default') + (', peer' if outcome.peer else '')
    print(f'{outcome.name:16} {kind:14} {outcome.errors[:, 0].mean():8.3f}   {values}', flush=True)


if __name__ == '__main__':
    sys.exit(main())
