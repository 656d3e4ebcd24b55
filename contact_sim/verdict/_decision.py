"""The verdict: what decides the outcome of a controller, from the rows of its runs alone.

The order of the questions, each answered by rates with Wilson intervals:

1. Does the controller itself raise, hang or return no numbers? Then that is the answer.
2. Does the case as stated work under the exact laws?
   - It fails, and works under a law that breaks a law of contact: an artefact holds it up.
   - It fails under every law: what makes it work (less delay, a smaller step, more friction) is
     the cause; where nothing does, the controller.
   - It works, and fails under another law: the contact law.
   - It works under all: the factor that first makes it fail inside its range; where none does,
     no failure was found.
   - It works, and fails under one law only that pulls at feet or holds them beyond friction: no
     ground does that, so this law is set aside, and the others decide.
3. An interval that includes one half where it matters: it cannot be told.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from contact_sim.compare._runs import KEPT
from contact_sim.compare._scenarios import GRAVITY
from contact_sim.contact_models.guarantees import LAWS, LIFTS_OFF, MAY_BREAK
from contact_sim.errors import one_line
from contact_sim.verdict._parting import Parting
from contact_sim.verdict._plan import (
    LOOP,
    OWN_DELAY,
    REFERENCE,
    SEEDS,
    SOLVER,
    WITHOUT,
    Factor,
    Row,
    law_of,
)
from contact_sim.verdict._rates import (
    OF_ITSELF,
    Margin,
    Table,
    case_of,
    effects_of,
    is_exact,
    margins_of,
    rate_of,
    reference_of,
)
from contact_sim.verdict._search import Counterexample
from contact_sim.verdict._statistics import (
    Effect,
    Rate,
    p_of_difference,
    p_of_even,
    rate,
)

CAUSES: dict[str, str] = {
    'none': 'no failure found',
    'controller': 'the controller',
    'contact_law': 'the contact law',
    'integration': 'the integration',
    'solver': 'the solver',
    'latency': 'the latency',
    'sensing': 'the sensing',
    'conditions': 'the conditions',
    'cannot_tell': 'cannot tell',
}
"""Cause: how it is called in a headline."""

ARTEFACTS: dict[str, tuple[str, str]] = {
    'slip': ('creep', 'lets loaded feet creep'),
    'force_at_distance': ('force at a distance', 'pushes feet that do not touch'),
    'cone': ('force outside the cone', 'holds feet with forces that friction cannot have'),
    'penetration': ('penetration', 'lets feet sink in'),
}
"""Residual: what it is called, and what a law does that breaks it."""
MEASURES = {
    'slip': 'creep_mean',
    'force_at_distance': 'force_at_distance_p99',
    'cone': 'cone_p99',
    'penetration': 'penetration_p99',
}
"""Residual: column by which runs are told apart; the largest one where it is missing."""
REALITY = {
    'slip': 'Dry friction holds a foot that stands inside its cone: reality does not creep.',
    'force_at_distance': 'No ground pushes a foot before it touches: reality does not do this.',
    'cone': 'No ground pulls at a foot, or holds it beyond friction: reality does not do this.',
    'penetration': (
        'Hard ground does not yield; soft ground does: on soft ground this may be real, and its '
        'stiffness has to be measured.'
    ),
    '': 'On rigid ground the exact laws are on the side of reality.',
}
"""Residual: whether reality is likely on the side of the law that breaks it."""
QUANTITIES = {
    'torque_limit': 'the torque limit',
    'support': 'the support polygon',
    'clearance': 'the clearance of the feet',
    'height': 'the height of the base',
    'tilt': 'the tilt of the base',
    'velocity': 'the velocity limit of the joints',
    'command_age': 'the age of the commands',
    'goal': 'the goal of the scenario',
    'not_finite': 'a state that is not finite',
    'controller': 'the controller itself',
}
"""Column `cause` of a failed run: in words."""
STATED = 'the stated case'
ALPHA = 0.05
"""p-value below which rates differ."""
HELD = 0.05
"""Share of the weight that a law must add to friction, or pull at feet, to count as holding them.

That is the median over the steps of a run. Laws whose bound of friction comes a step late are at
0, also where the robot falls; a law that holds feet is at 0.09 and more while a robot walks.
"""


@dataclass(frozen=True)
class Evidence:
    """One number behind a verdict."""

    text: str
    """Which runs."""
    rate: Rate

    def __str__(self) -> str:
        return f'{self.text}: {self.rate}'


@dataclass(frozen=True)
class Verdict:
    """What decides the outcome of a controller in a scenario."""

    cause: str
    """Key of CAUSES."""
    statement: str
    """In words."""
    confidence: float = 0.0
    """1 − p of the test that `why` names; 0 where it cannot be told."""
    why: str = ''
    """The test behind the confidence, or why it cannot be told."""
    factor: str = ''
    """Field of `Trial` that decides: contact_model, time_step, delay, ...; '' if none does."""
    limit: float = math.nan
    """Of that factor: the farthest value at which it still works."""
    residual: str = ''
    """Law of contact that is broken where the contact law decides."""
    artefact: bool = False
    """Whether it works only where a law of contact is broken."""
    quantity: str = ''
    """First quantity that left its band in the failed runs, key of QUANTITIES."""
    evidence: tuple[Evidence, ...] = ()
    effects: tuple[Effect, ...] = ()
    margins: tuple[Margin, ...] = ()
    notes: tuple[str, ...] = ()
    """What else was seen: further factors that make it fail, laws that refuse the robot."""
    set_aside: str = ''
    """The law whose failures do not count, because it holds feet as no ground can; '' if none."""
    parting: Parting | None = None
    """Where a run that works and one that fails part."""
    counterexamples: tuple[Counterexample, ...] = ()
    """Smallest disturbances under which it fails, from the search."""
    rows: tuple[Row, ...] = field(default=(), repr=False)
    """Of all runs."""
    page: Path | None = None
    """The page that was written."""

    @property
    def headline(self) -> str:
        """The cause in a few words."""
        if self.cause == 'contact_law' and self.artefact:
            return 'THE CONTACT LAW: it works only because of an artefact'
        words = CAUSES[self.cause]
        return words[0].upper() + words[1:]

    __repr__ = one_line


# --- What laws may break


def breaks(law: str) -> tuple[str, ...]:
    """Return the artefacts that a law, or preset, may have."""
    may = MAY_BREAK.get(law_of(law), {})
    return tuple(residual for residual in ARTEFACTS if residual in may)


# --- The decision


def decide(rows: Sequence[Row], factors: Sequence[Factor], complete: bool = True) -> Verdict:
    """Return the verdict that rows allow.

    Args:
        rows: of the runs, see `campaign.run_trial`, with `factor`, `level` and `level_text` of
            their case.
        factors: that were varied.
        complete: whether all wanted levels were run; False while runs are outstanding.
    """
    table = Table(rows)
    verdict = _decided(table, factors, complete)
    return _with_tables(verdict, table, rows, factors)


def _decided(table: Table, factors: Sequence[Factor], complete: bool) -> Verdict:
    stated = table.stated
    if not stated:
        why = 'no run that counts has ended'
        return Verdict('cannot_tell', 'Nothing can be told yet.', why=why)
    wrong = _controller_itself(stated)
    if wrong is not None:
        return wrong
    exact_laws = [law for law in table.laws() if is_exact(law)] or table.laws()[:1]
    exact = [row for law in exact_laws for row in table.case(law)]
    found, name = rate_of(exact), ' and '.join(exact_laws)
    evidence = (Evidence(f'the stated case under {name}', found),)
    solver = _solver(table, factors)
    if solver is not None:
        return solver
    if found.works:
        return _working(table, factors, found, evidence)
    if found.fails:
        return _failing(table, factors, found, evidence, complete)
    if found.runs < SEEDS:
        why = f'too few runs: {found} under {name}'
    else:
        why = f'mixed evidence: the stated case itself works in {found} under {name}'
    statement = 'Its outcome changes with the seed alone, everything else equal.'
    if found.successes in (0, found.runs):
        word = 'worked' if found.successes else 'failed'
        statement = f'It {word} so far, in {found.runs} runs under {name}.'
    return Verdict('cannot_tell', statement, why=why, evidence=evidence)


def _controller_itself(stated: Sequence[Row]) -> Verdict | None:
    """Return a verdict where the controller raises, hangs or returns no numbers in every run."""
    wrong = [row for row in stated if row['outcome'] in OF_ITSELF or row['cause'] == 'controller']
    if len(wrong) < len(stated):
        return None
    kind = Counter(row['outcome'] for row in wrong).most_common(1)[0][0]
    what = {'hung': 'It hangs', 'crashed': 'It ends its process'}.get(kind, 'It fails by itself')
    shown = next(row for row in wrong if row['outcome'] == kind)
    statement = f'{what} in every run: {shown["reason"]}'
    found = rate(0, len(wrong))
    return Verdict(
        'controller', statement, 1.0, 'the error itself', quantity='controller',
        evidence=(Evidence('the stated case under all laws', found),),
    )  # fmt: skip


# --- It works under the exact laws


def _working(
    table: Table, factors: Sequence[Factor], exact: Rate, evidence: tuple[Evidence, ...]
) -> Verdict:
    others = {law: table.rate(law) for law in table.laws() if not is_exact(law)}
    held = _holding(table)
    if held:
        return _without_holding(table, held, factors, exact, evidence)
    failing = [law for law, found in others.items() if found.fails]
    if failing:
        return _contact_law(table, failing, exact, evidence, works_there=False)
    unclear = [law for law, found in others.items() if found.successes < found.runs]
    if unclear:
        worst = min(unclear, key=lambda law: others[law].share)
        p = p_of_difference(exact, others[worst])
        evidence += tuple(Evidence(f'the stated case under {law}', others[law]) for law in unclear)
        if p < ALPHA:
            return _contact_law(table, [worst], exact, evidence, works_there=False)
        why = (
            f'intervals overlap: {others[worst]} under {worst} against {exact} under the exact '
            f'laws, p = {p:.2g}'
        )
        return Verdict('cannot_tell', 'It sometimes fails under some laws.', why=why,
                       evidence=evidence)  # fmt: skip
    law = reference_of(table)
    limits = [limit for factor in factors if (limit := _limit(table, factor, law)) is not None]
    clear = [limit for limit in limits if limit.clear]
    if clear:
        return _factor_fails(table, clear, exact, evidence)
    if limits:
        first = limits[0]
        why = f'intervals overlap: {first.rate} at {first.factor.label} {first.failed_text}'
        return Verdict('cannot_tell', 'It fails in some runs away from the stated case.', why=why,
                       evidence=(*evidence, first.evidence))  # fmt: skip
    missing = [
        f'{factor.label} {factor.text(level)}'
        for factor in factors
        for level in factor.levels
        if not table.case(law, factor.name, level)
    ]
    if missing:
        why = f'too few runs: {len(missing)} values were not tried yet, the first {missing[0]}'
        return Verdict('cannot_tell', 'It worked in every run so far.', why=why,
                       evidence=evidence)  # fmt: skip
    both = [row for row in table.rows if not row['success']]
    if both:
        return _law_and_factor(table, factors, both, evidence)
    return _no_failure(table, factors, evidence)


def _no_failure(
    table: Table, factors: Sequence[Factor], evidence: tuple[Evidence, ...]
) -> Verdict:
    """Return the verdict where every run of a table works."""
    everywhere = rate_of(table.rows)
    inside = '; '.join(
        f'{factor.label} up to {factor.text(factor.levels[-1])}' if factor.reach > factor.nominal
        else f'{factor.label} down to {factor.text(factor.levels[-1])}'
        for factor in factors
    )  # fmt: skip
    return Verdict(
        'none',
        f'It worked in all {everywhere.runs} runs, under {len(table.laws())} contact laws, and '
        f'with each of these alone: {inside}.',
        1.0 - p_of_even(everywhere),
        f'{everywhere} of all runs work; binomial test against one half',
        evidence=(*evidence, Evidence('all runs', everywhere)),
    )


def holds_feet(row: Row) -> bool:
    """Whether feet were pulled at, or held beyond friction, by a good part of the weight."""
    excess = float(row.get('cone_p50', math.nan)) / (row['time_step'] * GRAVITY)
    return _broken(row, 'cone') and excess > HELD


def _holding(table: Table) -> str:
    """Return the law that alone fails a case, and whose failures all hold feet; '' if none."""
    failed = [row for row in table.stated if not row['success']]
    laws = {row['contact_model'] for row in failed}
    if len(laws) != 1 or not all(map(holds_feet, failed)):
        return ''
    (law,) = laws
    return '' if is_exact(law) else law


def _without_holding(
    table: Table, held: str, factors: Sequence[Factor], exact: Rate, evidence: tuple[Evidence, ...]
) -> Verdict:
    """Return the verdict of all laws but the one that holds feet as stated, with a remark."""
    rates = {law: table.rate(law) for law in table.laws() if law != held and not is_exact(law)}
    few = next((f'{found} under {law}' for law, found in rates.items() if not found.works), '')
    if few:
        why = f'too few runs: {few}; it has to work under every law but {held}'
        verdict = Verdict('cannot_tell', f'It fails so far under {held} only.', why=why,
                          evidence=evidence)  # fmt: skip
    else:
        verdict = _working(table.without(held), factors, exact, evidence)
    return _remarked(verdict, table, held)


def _remarked(verdict: Verdict, table: Table, held: str, case: str = STATED) -> Verdict:
    """Return a verdict with what is to say about a law that holds feet in a case."""
    failed = [row for row in table.case(held) if not row['success']]
    excess = float(np.median([row['cone_p50'] / (row['time_step'] * GRAVITY) for row in failed]))
    where = held if case == STATED else f'{held} with {case}'
    remark = (
        f' Under {where} it fails, which does not count: the law pulls at feet, or holds them '
        f'beyond friction, by {excess:.2g} times the weight or more in half of the steps. '
        'No ground does this.'
    )
    reason = MAY_BREAK.get(law_of(held), {}).get('cone', '')
    notes = [
        _first_broken(table, [held], 'cone').strip(),
        f'{held}: {reason}.' if reason else '',
        f'It fails under {where}: {first_reason(failed)}',
    ]
    shown = Evidence(f'{case} under {held}, set aside', table.rate(held))
    return replace(
        verdict, statement=verdict.statement + remark, set_aside=held,
        notes=(*verdict.notes, *filter(None, notes)), evidence=(*verdict.evidence, shown),
    )  # fmt: skip


def _law_and_factor(
    table: Table, factors: Sequence[Factor], failed: Sequence[Row], evidence: tuple[Evidence, ...]
) -> Verdict:
    """Return the verdict where it fails only under another law and with another factor at once."""
    law = reference_of(table)
    away = [row for row in table.rows if row['factor'] and not is_exact(row['contact_model'])]
    compared = len({case_of(row) for row in away})  # as many chances to fail
    found: list[Verdict] = []
    names: dict[str, None] = {}
    held: dict[tuple[str, str, str], tuple[Table, str]] = {}
    for factor in factors:
        for level in sorted({x['level'] for x in failed if x['factor'] == factor.name}):
            case = f'{factor.label} {factor.text(level)}'
            there = Table(
                ({**row, 'factor': '', 'level_text': ''} for row in table.rows
                 if (row['factor'], row['level_text']) == (factor.name, str(level))), table.aside
            )  # fmt: skip
            holding = _holding(there)
            if holding and there.rate(law).works:
                held[factor.name, str(level), holding] = there, case
                continue
            rates = {name: there.rate(name) for name in there.laws()}
            names |= {
                f'{name} with {case} in {rate.runs - rate.successes} of {rate.runs} runs': None
                for name, rate in rates.items() if rate.successes < rate.runs
            }  # fmt: skip
            failing = [name for name, rate in rates.items() if rate.fails and not is_exact(name)]
            if failing and there.rate(law).works:
                found.append(
                    _contact_law(there, failing, there.rate(law), evidence, False, case, compared)
                )
    if held and not names:
        others = Table((row for row in table.rows if case_of(row) not in held), table.aside)
        verdict = _no_failure(others, factors, evidence)
        for (_, _, holding), (there, case) in held.items():
            verdict = _remarked(verdict, there, holding, case)
        return verdict
    everywhere = Evidence('all runs', rate_of(table.rows))
    clear = [verdict for verdict in found if verdict.cause == 'contact_law']
    if clear:
        best = max(clear, key=lambda verdict: verdict.confidence)
        notes = (*best.notes, *(f'It failed under {name}.' for name in names))
        return replace(best, notes=notes, evidence=(*best.evidence, everywhere))
    return Verdict(
        'cannot_tell',
        f'It works in the stated case under {table.every_law}, and under {law} with each factor '
        f'alone to the end of its range; it failed under {"; ".join(names)}.',
        why=f'law and factor at once, too few runs: {everywhere.rate} of all runs work',
        evidence=(*evidence, everywhere),
    )


@dataclass(frozen=True)
class Limit:
    """Where a factor makes a working case fail."""

    factor: Factor
    bears: float
    failed: float
    rate: Rate
    clear: bool

    @property
    def failed_text(self) -> str:
        """The nearest value that fails, with its unit."""
        return self.factor.text(self.failed)

    @property
    def evidence(self) -> Evidence:
        """The rate at that value."""
        return Evidence(f'{self.factor.label} {self.failed_text}', self.rate)


def _limit(table: Table, factor: Factor, law: str) -> Limit | None:
    """Return where a factor makes the case fail; None where it never does in its range."""
    levels = [x for x in table.levels(factor.name, law) if factor.distance(x) > 0.0]
    levels = sorted((x for x in levels if factor.distance(x) <= _end(factor)), key=factor.distance)
    rates = {x: table.rate(law, factor.name, x) for x in levels}
    failed = [x for x in levels if 2 * rates[x].successes < rates[x].runs]
    some = [x for x in levels if rates[x].successes < rates[x].runs]
    if not some:
        return None
    nearest = (failed or some)[0]
    bears = [x for x in levels if factor.distance(x) < factor.distance(nearest)]
    stated = table.rate(law)
    clear = [
        x for x in levels
        if rates[x].fails or p_of_difference(rates[x], stated) < ALPHA
    ]  # fmt: skip
    shown = rates[clear[0]] if clear else rates[nearest]
    return Limit(factor, bears[-1] if bears else factor.nominal, nearest, shown, bool(clear))


def _end(factor: Factor) -> float:
    return factor.distance(factor.levels[-1]) + 1e-9


def _factor_fails(
    table: Table, limits: Sequence[Limit], exact: Rate, evidence: tuple[Evidence, ...]
) -> Verdict:
    """Return the verdict on a controller that works in the stated case and fails away from it."""
    # the factor that fails in the smallest share of its range
    first = min(limits, key=lambda x: x.factor.distance(x.failed) / _end(x.factor))
    factor, law = first.factor, reference_of(table)
    failed = [row for row in table.rows if row['factor'] == factor.name and not row['success']]
    quantity = _first_quantity(failed)
    than = 'up to' if factor.reach > factor.nominal else 'down to'
    statement = (
        f'It works in the stated case under {table.every_law}, and {than} {factor.label} '
        f'{factor.text(first.bears)}; at {first.failed_text} it fails. First leaves its band: '
        f'{_quantity_text(quantity)}.'
    )
    notes = [
        f'It also fails at {limit.factor.label} {limit.failed_text}: {limit.rate}.'
        for limit in limits if limit is not first
    ]  # fmt: skip
    if factor.name == 'time_step':
        statement += _loop_text(table, law, first.failed)
    p = p_of_difference(exact, first.rate)
    return Verdict(
        factor.cause, statement, 1.0 - p, f'Fisher\'s exact test of {exact} against {first.rate}',
        factor.name, first.bears, quantity=quantity, notes=tuple(notes),
        evidence=(*evidence, first.evidence, *(x.evidence for x in limits if x is not first)),
    )  # fmt: skip


def _loop_text(table: Table, law: str, level: float) -> str:
    """Return what the loop has to do with it: its commands are held for a whole step, too."""
    levels = [x for x in table.levels(LOOP, law) if x >= level]
    if not levels:
        return ''
    level = min(levels)
    held = table.rate(law, LOOP, level)
    if held.share < 0.5:
        return (
            f' A loop of {1e3 * level:g} ms with small steps of the physics fails as well '
            f'({held}): its commands are held too long. A real robot needs the faster loop.'
        )
    return (
        f' With the loop as slow and small steps of the physics it works ({held}): it is the '
        'error of the integration.'
    )


# --- It fails under the exact laws


def _failing(
    table: Table,
    factors: Sequence[Factor],
    exact: Rate,
    evidence: tuple[Evidence, ...],
    complete: bool,
) -> Verdict:
    others = {law: table.rate(law) for law in table.laws() if not is_exact(law)}
    working = [law for law, found in others.items() if found.works]
    if working:
        return _contact_law(table, working, exact, evidence, works_there=True)
    unclear = [law for law, found in others.items() if found.successes]
    if unclear:
        best = max(unclear, key=lambda law: others[law].share)
        p = p_of_difference(exact, others[best])
        evidence += tuple(Evidence(f'the stated case under {law}', others[law]) for law in unclear)
        if p < ALPHA and others[best].runs >= SEEDS:
            return _contact_law(table, [best], exact, evidence, works_there=True)
        why = (
            f'intervals overlap: {others[best]} under {best} against {exact} under the exact laws'
        )
        return Verdict('cannot_tell', 'It sometimes works under some laws.', why=why,
                       evidence=evidence)  # fmt: skip
    law, failed = reference_of(table), [row for row in table.rows if not row['success']]
    quantity = _first_quantity(table.stated)
    remedies = _remedies(table, factors, law)
    for name, level, found in remedies:
        if found.works or (found.runs >= SEEDS and p_of_difference(found, exact) < ALPHA):
            return _remedied(table, factors, (name, level, found), exact, evidence, quantity)
    some = [x for x in remedies if 2 * x[2].successes >= x[2].runs or x[2].runs < SEEDS]
    some = [x for x in some if x[2].successes]
    if some:
        name, level, found = some[0]
        why = f'too few runs: {found} at {_label(factors, name)} {level:g}'
        return Verdict('cannot_tell', 'It fails in the stated case.', why=why, evidence=evidence)
    if not complete and not remedies:
        return Verdict('cannot_tell', 'It failed in every run so far.', why='runs to come',
                       quantity=quantity, evidence=evidence)  # fmt: skip
    everywhere = rate_of(table.rows)
    tried = ', '.join(dict.fromkeys(_label(factors, name) for name, _, _ in remedies))
    first = _example(table.stated)
    statement = (
        f'It fails under every one of {len(table.laws())} contact laws, exact or not'
        + (f', and nothing that was changed makes it work ({tried})' if tried else '')
        + f'. First leaves its band: {_quantity_text(quantity)}, so under '
        f'{first["contact_model"]}: {first["reason"]}'
    )
    return Verdict(
        'controller', statement, 1.0 - p_of_even(everywhere),
        f'{everywhere} of all runs work; binomial test against one half', quantity=quantity,
        evidence=(*evidence, Evidence('all runs', everywhere)),
    ) if failed else Verdict('cannot_tell', statement, evidence=evidence)  # fmt: skip


def _remedies(table: Table, factors: Sequence[Factor], law: str) -> list[tuple[str, float, Rate]]:
    """Return (factor, level, rate) of what was tried to make a failing case work."""
    found = [(OWN_DELAY, x, table.rate(law, OWN_DELAY, x)) for x in table.levels(OWN_DELAY, law)]
    for f in factors:
        better = [x for x in table.levels(f.name, law) if f.distance(x) < 0.0]
        better.sort(key=f.distance, reverse=True)  # from the nearest on
        found += [(f.name, x, table.rate(law, f.name, x)) for x in better]
    return found


def _remedied(
    table: Table,
    factors: Sequence[Factor],
    remedy: tuple[str, float, Rate],
    exact: Rate,
    evidence: tuple[Evidence, ...],
    quantity: str,
) -> Verdict:
    """Return the verdict on a controller that works once one factor is better than stated."""
    name, level, found = remedy
    p = p_of_difference(found, exact)
    test = f"Fisher's exact test of {exact} against {found}"
    band = f'First leaves its band: {_quantity_text(quantity)}.'
    if name == OWN_DELAY:
        return Verdict(
            'latency',
            f'It fails under every contact law, because its commands come {1e3 * level:g} ms '
            f'after the state that they answer: the same commands at once work. {band}',
            1.0 - p, test, 'delay', 0.0, quantity=quantity,
            evidence=(*evidence, Evidence(f'without its own delay of {1e3 * level:g} ms', found)),
        )  # fmt: skip
    factor = next(factor for factor in factors if factor.name == name)
    return Verdict(
        factor.cause,
        f'It fails in the stated case under every contact law, at {factor.label} '
        f'{factor.text(factor.nominal)}; at {factor.text(level)} it works. {band}',
        1.0 - p, test, name, level, quantity=quantity,
        evidence=(*evidence, Evidence(f'{factor.label} {factor.text(level)}', found)),
    )  # fmt: skip


# --- The contact law


def _contact_law(
    table: Table,
    suspects: Sequence[str],
    exact: Rate,
    evidence: tuple[Evidence, ...],
    works_there: bool,
    case: str = STATED,
    compared: int = 0,
) -> Verdict:
    """Return the verdict where laws that break a law end otherwise than the exact ones.

    `case` names the one that the table states; `compared` is how many cases might have differed,
    0: as many as laws.
    """
    residual, cured = _residual(table, suspects, works_there)
    shown = {law: table.rate(law) for law in table.laws() if not is_exact(law)}
    texts = {law: f'{case} under {law}' for law in shown}
    known = {e.text for e in evidence}
    evidence += tuple(Evidence(texts[law], r) for law, r in shown.items()
                      if texts[law] not in known)  # fmt: skip
    evidence += tuple(cured)
    pooled = rate_of([row for law in suspects for row in table.case(law)])
    # the suspects were chosen among all laws: as many chances to differ (Bonferroni)
    compared = compared or max(len(shown), 1)
    p = min(compared * p_of_difference(exact, pooled), 1.0)
    if p >= ALPHA:
        why = (
            f'too few runs: {pooled} under {" and ".join(suspects)} against {exact} under the '
            f'exact laws, p = {p:.2g} for {compared} comparisons'
        )
        word = 'works' if works_there else 'fails'
        return Verdict('cannot_tell', f'It {word} so far under {" and ".join(suspects)} only.',
                       why=why, evidence=evidence)  # fmt: skip
    statement = _of_the_law(table, suspects, residual, works_there, case)
    reasons = [
        f'{law}: {MAY_BREAK[law_of(law)][residual]}.'
        for law in suspects if residual in MAY_BREAK.get(law_of(law), {})
    ]  # fmt: skip
    if residual == 'force_at_distance':
        reasons += [f'{law}: {"; ".join(LIFTS_OFF[law_of(law)].values())}.'
                    for law in suspects if law_of(law) in LIFTS_OFF]  # fmt: skip
    side = 'It would fail on a robot.' if works_there else 'A robot would likely work.'
    if residual == 'penetration':
        side = ''
    quantity = _first_quantity(table.stated)
    return Verdict(
        'contact_law', f'{statement} {REALITY[residual]} {side}'.rstrip(), 1.0 - p,
        f"Fisher's exact test of {exact} against {pooled}, for {compared} comparisons",
        'contact_model',
        residual=residual, artefact=works_there, quantity=quantity, evidence=evidence,
        notes=tuple(reasons),
    )  # fmt: skip


def _of_the_law(
    table: Table, suspects: Sequence[str], residual: str, works_there: bool, case: str
) -> str:
    """Return the sentence that names the laws under which it ends otherwise."""
    names, what = ' and '.join(suspects), ARTEFACTS.get(residual, ('', ''))
    each = 'which' if len(suspects) == 1 else 'each of which'
    does = f', {each} {what[1]}' if residual else ''
    where = _first_broken(table, suspects, residual)
    if works_there:
        return (
            f'It works ONLY BECAUSE OF AN ARTEFACT: it works under {names}{does}, and fails under '
            f'the exact laws.{where}'
        )
    before = f'It works in the stated case under {table.every_law}. With {case} it fails'
    return (
        f'{"It fails" if case == STATED else before} only under {names}{does}; under the '
        f'exact laws it works.{where}'
    )


def _residual(
    table: Table, suspects: Sequence[str], works_there: bool
) -> tuple[str, list[Evidence]]:
    """Return the law of contact behind the difference, and runs without its violation.

    A residual without which the suspects end as the exact laws do is the answer. Else it is the
    one that is broken under the suspects, and broken less under the other laws.
    """
    evidence: list[Evidence] = []
    cured: dict[str, float] = {}
    for residual in ARTEFACTS:
        rows = [row for law in suspects for row in table.case(law, WITHOUT, residual)]
        if not rows:
            continue
        found = rate_of(rows)
        name = ARTEFACTS[residual][0]
        evidence.append(Evidence(f'{" and ".join(suspects)} without {name}', found))
        turned = found.share < 0.5 if works_there else found.share > 0.5
        if turned:
            cured[residual] = abs(found.share - (1.0 if works_there else 0.0))
    others = [law for law in table.laws() if law not in suspects]
    best, score = '', 0.5
    for residual in ARTEFACTS:
        if not any(residual in breaks(law) for law in suspects):
            continue
        inside = [row for law in suspects for row in table.case(law)]
        outside = [row for law in others for row in table.case(law)]
        share = np.mean([_broken(row, residual) for row in inside])
        value = float(share) * _larger(inside, outside, residual) + cured.get(residual, 0.0)
        if value > score:
            best, score = residual, value
    return best, evidence


def _broken(row: Row, residual: str) -> bool:
    return bool(row.get(f'{residual}_broken', False))


def _larger(inside: Sequence[Row], outside: Sequence[Row], residual: str) -> float:
    """Return the probability that a run inside has the larger residual, ties count half."""

    def measure(row: Row) -> float:
        value = float(row.get(MEASURES[residual], math.nan))
        value = float(row.get(f'{residual}_max', 0.0)) if math.isnan(value) else value
        return value if _broken(row, residual) else 0.0

    if not outside:
        return 1.0
    a, b = np.array([measure(x) for x in inside]), np.array([measure(x) for x in outside])
    return float(np.mean((a[:, None] > b) + 0.5 * (a[:, None] == b)))


def _first_broken(table: Table, suspects: Sequence[str], residual: str) -> str:
    """Return when and at which foot a residual was first beyond its limit, as a sentence."""
    for law in suspects:
        for row in table.case(law):
            if not residual or row.get('first_broken') != residual:
                continue
            foot = f' at {row["first_broken_foot"]}' if row.get('first_broken_foot') else ''
            limit, largest = KEPT[residual], float(row.get(f'{residual}_max', math.nan))
            return (
                f' Under {law} the {ARTEFACTS[residual][0]} is beyond its limit of {limit:g} '
                f'{_unit(residual)} from t = {row["first_broken_time"]:.3f} s on{foot}; largest '
                f'{largest:.2g} {_unit(residual)}.'
            )
    return ''


def _unit(residual: str) -> str:
    return LAWS[residual].rpartition('[')[2].rstrip(']') if residual in LAWS else ''


# --- The solver


def _solver(table: Table, factors: Sequence[Factor]) -> Verdict | None:
    """Return a verdict where exactly the runs fail in which a solve did not converge."""
    law = reference_of(table)
    failed = [row for row in table.rows if not row['success']]
    worked = [row for row in table.rows if row['success']]
    helped = table.rate(law, SOLVER, 1.0)
    missed = [row for row in failed if row.get('unsolved', 0) > 0]
    clean = [row for row in worked if row.get('unsolved', 0) > 0]
    if not failed or len(missed) < len(failed) or clean:
        return None
    stated = table.rate(law)
    of_factors = {row['factor'] for row in failed}
    confounded = len(of_factors - {''}) == 1 and '' not in of_factors
    one_law = len({row['contact_model'] for row in failed}) == 1 and '' in of_factors
    if helped.works and not stated.works:
        found = Evidence('with more iterations of the solver', helped)
    elif confounded or one_law or len(failed) < SEEDS or len(worked) < SEEDS:
        return None
    else:
        found = Evidence('runs in which every solve converged', rate_of(worked))
    unsolved = rate_of(missed)
    p = p_of_difference(found.rate, unsolved)
    if p >= ALPHA:
        return None
    return Verdict(
        'solver',
        'It fails exactly where the solver of the contact problem did not converge, and works '
        'wherever it did. The forces of such a step are no solution of any law.',
        1.0 - p, f'Fisher\'s exact test of {found.rate} against {unsolved}', 'solver',
        quantity=_first_quantity(failed),
        evidence=(Evidence('runs with a solve that did not converge', unsolved), found),
    )  # fmt: skip


# --- Words, and all that goes with a verdict


def _label(factors: Sequence[Factor], name: str) -> str:
    if name == OWN_DELAY:
        return 'no delay of its own'
    return next((factor.label for factor in factors if factor.name == name), name)


def _end_time(row: Row) -> float:
    return float(row.get('end_time', math.inf))


def _first_quantity(rows: Sequence[Row]) -> str:
    """Return the quantity that most failed runs left first, '' where it is not known."""
    causes = Counter(row['cause'] for row in rows if not row['success'] and row['cause'])
    return causes.most_common(1)[0][0] if causes else ''


def _example(rows: Sequence[Row]) -> Row:
    """Return a failed run that left `_first_quantity` first: of the reference law if there is one.

    Of several it is the one with the smallest seed, which was run as stated.
    """
    quantity = _first_quantity(rows)
    failed = [row for row in rows if not row['success'] and row['cause'] == quantity]
    return min(failed or [row for row in rows if not row['success']], key=lambda row: (
        row['contact_model'] != REFERENCE, not is_exact(row['contact_model']), row['seed'],
        _end_time(row),
    ))  # fmt: skip


def first_reason(rows: Sequence[Row]) -> str:
    """Return the reason of the first failed run, '' if none failed."""
    return next((str(row['reason']) for row in rows if not row['success']), '')


def _quantity_text(quantity: str) -> str:
    return QUANTITIES.get(quantity, quantity or 'not known')


def _with_tables(
    verdict: Verdict, table: Table, rows: Sequence[Row], factors: Sequence[Factor]
) -> Verdict:
    notes = (*verdict.notes, *table.notes)
    if not table.stated:
        return replace(verdict, notes=notes, rows=tuple(rows))
    counted_laws = table.without(verdict.set_aside) if verdict.set_aside else table
    return replace(
        verdict, notes=notes, rows=tuple(rows), effects=effects_of(counted_laws, factors),
        margins=margins_of(table, factors),
    )  # fmt: skip
