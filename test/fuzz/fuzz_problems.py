"""Contact problems of odd numbers, and damaged files of them.

What is accepted is asked of a contact model: its impulses are finite.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_bytes import damaged
from fuzz_values import odd, shown
from fuzz_workers import Unlawful

from contact_sim import Anitescu, ContactProblem, Lcp, Ncp, Sap, Todorov, law_residuals
from contact_sim.step._problem import Cone, Interval

MODELS = (Ncp(), Ncp(), Sap(), Lcp(), Anitescu(), Todorov())
SCALES = (1e-12, 1e-6, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e6, 1e12)


def sound(chance: random.Random) -> dict[str, Any]:
    """Return the arguments of `ContactProblem.from_dynamics` for a random mechanism."""
    noise = np.random.default_rng(chance.getrandbits(64))
    nv, nc, ns = chance.randrange(1, 9), chance.randrange(4), chance.randrange(3)
    root = noise.normal(size=(nv, nv))
    lower = -np.abs(noise.normal(size=ns))
    return {
        'inertia': root @ root.T + np.eye(nv),
        'jacobian': noise.normal(size=(3 * nc + ns, nv)),
        'velocity': noise.normal(size=nv),
        'free_motion': noise.normal(size=nv),
        'friction': np.abs(noise.normal(size=nc)),
        'gap': np.abs(noise.normal(size=nc)),
        'bias': 0.1 * noise.normal(size=3 * nc + ns),
        'time_step': 1e-3,
        'lower': lower,
        'upper': np.where(noise.random(ns) < 0.5, np.inf, -lower),
    }


class Problems:
    """Inputs of the kind `problems`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        self.path = folder / 'problem.npz'
        ContactProblem.from_dynamics(**sound(random.Random(1))).save(self.path)
        self.whole = self.path.read_bytes()
        for model in MODELS:
            model.solve(ContactProblem.from_dynamics(**sound(random.Random(2))))

    def run(self, chance: random.Random) -> None:
        """Make one problem and ask a model."""
        self.ask(chance.choice((self.of_file, self.of_fields, self.of_scales, self.of_blocks))(
            chance), chance)  # fmt: skip

    def of_file(self, chance: random.Random) -> ContactProblem:
        """Return the problem of a damaged file."""
        data = damaged(self.whole, chance)
        self.said = partial(shown, data)
        self.path.write_bytes(data)
        return ContactProblem.load(self.path)

    def of_fields(self, chance: random.Random) -> ContactProblem:
        """Return a problem with one or two odd fields."""
        whole = ContactProblem.from_dynamics(**sound(chance))
        values = {item.name: getattr(whole, item.name) for item in fields(whole)}
        for name in chance.sample(sorted(values), chance.choice((1, 1, 2))):
            values[name] = odd(chance, values[name])
        self.said = partial(shown, values, 3000)
        return ContactProblem(**values)

    def of_scales(self, chance: random.Random) -> ContactProblem:
        """Return a problem of very large and very small numbers, singular ones among them."""
        values = sound(chance)
        for name in chance.sample(sorted(values), 2):
            values[name] = values[name] * chance.choice(SCALES)
        if chance.random() < 0.2:
            values['jacobian'] = np.repeat(values['jacobian'][:1], len(values['jacobian']), axis=0)
        if chance.random() < 0.2:
            values['inertia'] = values['inertia'] * np.eye(1, len(values['inertia']))
        self.said = partial(shown, values, 3000)
        return ContactProblem.from_dynamics(**values)

    def of_blocks(self, chance: random.Random) -> ContactProblem:
        """Return a problem of blocks with something odd in one argument."""
        values = {
            'blocks': [Cone(np.eye(3), 0.5, 0.0), Interval(np.eye(1, 3), -1.0, 1.0)],
            'inertia': np.eye(3), 'velocity': np.zeros(3), 'free_motion': np.array([0.1, 0, -1.]),
            'time_step': 1e-3,
        }  # fmt: skip
        name = chance.choice(sorted(values))
        values[name] = odd(chance, values[name])
        self.said = partial(shown, values, 2000)
        return ContactProblem.from_blocks(**values)

    def ask(self, problem: ContactProblem, chance: random.Random) -> None:
        """Raise Unlawful where a model answers with impulses that are not finite."""
        model = chance.choice(MODELS)
        impulse = model.solve(problem).impulse
        if not np.isfinite(impulse).all():
            raise Unlawful(f'{model.name} answers with impulses that are not finite')
        if np.isnan(list(law_residuals(problem, impulse))).any():  # inf: nothing can answer
            raise Unlawful(f'residuals of {model.name} that are no numbers')
