"""Runs inputs in a process of its own: a crash or a hang is a finding and not the end of the run.

An input is known by kind, seed and number: `python test/fuzz/fuzz.py KIND --seed S --number N`.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from contact_sim.errors import ContactSimError

ALLOWED = (ContactSimError, TypeError, OSError)
"""Errors that may answer an odd input: ours, wrong kinds of argument, files."""
MEMORY = 6 << 30
"""Address space of a worker beyond what it has at its start [bytes]."""
START = 600.0
"""Wall time in which a worker is ready: it may compile kernels [s]."""
PACKAGE = f'{os.sep}contact_sim{os.sep}'
PAGE = os.sysconf('SC_PAGE_SIZE')


class Unlawful(Exception):
    """An odd input was accepted, and what came of it is not finite or breaks a promise."""


class Inputs(Protocol):
    """One kind of inputs; made in the worker.

    Attributes:
        said: the last input in words, or what gives them: they take time.
    """

    said: str | Callable[[], str]

    def run(self, chance: random.Random) -> None:
        """Try one input; raise one of `ALLOWED` where it is refused, Unlawful where it is not."""
        ...


Maker = Callable[[Path], Inputs]


@dataclass(frozen=True)
class Finding:
    """What went wrong with one input."""

    kind: str
    seed: int
    number: int
    what: str
    """Error with its place in contact_sim; findings with the same `what` are one."""
    said: str
    """The input, in words, and what was said about it."""

    @property
    def command(self) -> str:
        """The command that tries this input again."""
        return f'python test/fuzz/fuzz.py {self.kind} --seed {self.seed} --number {self.number}'

    def __str__(self) -> str:
        return f'{self.what}\n    {self.said}\n    {self.command}'


@dataclass
class Tally:
    """Outcome of a run over many inputs."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    grown: float = 0.0
    """Resident memory gained by the last worker after its first quarter [MB]."""
    findings: list[Finding] = field(default_factory=list)

    def groups(self) -> dict[str, list[Finding]]:
        """Return the findings by what went wrong, the most frequent first."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.what, []).append(finding)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def __str__(self) -> str:
        speed = self.inputs / self.seconds if self.seconds else 0.0
        lines = [
            f'{self.inputs} inputs, {self.refused} refused, {speed:.0f} per second, '
            f'{len(self.findings)} findings of {len(self.groups())} sorts, '
            f'memory {self.grown:+.1f} MB'
        ]
        lines += [f'{len(group)} x {group[0]}' for group in self.groups().values()]
        return '\n'.join(lines)


def chance_of(kind: str, seed: int, number: int) -> random.Random:
    """Return the random numbers of an input."""
    return random.Random(f'{kind}/{seed}/{number}')


def attempt(inputs: Inputs, kind: str, seed: int, number: int) -> tuple[bool, Finding | None]:
    """Try one input; return whether it was refused, and what went wrong."""
    inputs.said = ''
    try:
        inputs.run(chance_of(kind, seed, number))
    except Unlawful as error:
        return False, Finding(kind, seed, number, f'accepted: {error}', words(inputs))
    except ALLOWED:
        return True, None
    except Exception as error:
        said = f'{words(inputs)}: {" ".join(str(error).split())[:300]}'
        return True, Finding(kind, seed, number, f'{type(error).__name__} {place(error)}', said)
    return False, None


def words(inputs: Inputs) -> str:
    """Return the last input in words."""
    return inputs.said if isinstance(inputs.said, str) else inputs.said()


def place(error: BaseException) -> str:
    """Return the last line of contact_sim that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGE in frame.filename] or frames
    frame = ours[-1]
    file = frame.filename.rpartition(PACKAGE)[2] if PACKAGE in frame.filename else frame.filename
    return f'at {file}:{frame.lineno} in {frame.name}'


def resident() -> float:
    """Return the memory that this process holds [MB]."""
    return int(Path('/proc/self/statm').read_text(encoding='ascii').split()[1]) * PAGE / 1e6


def limit_memory() -> None:
    """Let this process have `MEMORY` more: a bomb is a MemoryError, not the machine's end."""
    now = int(Path('/proc/self/statm').read_text(encoding='ascii').split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def work(
    maker: Maker, kind: str, seed: int, numbers: range, folder: str, answers: Connection
) -> None:
    """Try inputs; answer ('ready',), then (number, refused, finding, memory) for each."""
    sys.stdout = sys.stderr = open(os.devnull, 'w', encoding='utf-8')  # noqa: SIM115
    os.dup2(sys.stderr.fileno(), 1)
    os.dup2(sys.stderr.fileno(), 2)
    warnings.simplefilter('ignore')
    os.chdir(folder)  # names that they are told become files
    inputs = maker(Path(folder))
    limit_memory()
    answers.send(('ready',))
    for number in numbers:
        refused, finding = attempt(inputs, kind, seed, number)
        answers.send((number, refused, finding, resident() if number % 64 == 0 else None))


def hunt(
    maker: Maker,
    kind: str,
    seed: int,
    count: int,
    patience: float = 5.0,
    first: int = 0,
    say: Callable[[Finding], None] = lambda _: None,
) -> Tally:
    """Try `count` inputs.

    Args:
        maker: makes the inputs, in another process.
        kind: their name.
        seed: of all random numbers.
        count: of inputs.
        patience: wall time after which an input hangs, if it does so twice [s].
        first: number of the first.
        say: called with the first finding of each sort.
    """
    tally, begin, next_one, last = Tally(), time.perf_counter(), first, first + count

    def note(finding: Finding) -> None:
        if finding.what not in tally.groups():
            say(finding)
        tally.findings.append(finding)

    suspect: int | None = None
    while next_one < last:
        with tempfile.TemporaryDirectory(prefix='contact_sim_fuzz_') as folder:
            for event in _one_worker(maker, kind, seed, range(next_one, last), folder, patience):
                if isinstance(event, str):
                    if event == 'hang' and suspect != next_one:
                        suspect = next_one  # a machine may pause once: it gets a second try
                        break
                    note(Finding(kind, seed, next_one, event, 'no answer'))
                    tally.inputs, next_one = tally.inputs + 1, next_one + 1
                    break
                refused, finding = event
                tally.inputs, next_one = tally.inputs + 1, next_one + 1
                tally.refused += refused
                if isinstance(finding, Finding):
                    note(finding)
            else:
                tally.grown = _grown
    tally.seconds = time.perf_counter() - begin
    return tally


_grown = 0.0


def _one_worker(
    maker: Maker, kind: str, seed: int, numbers: range, folder: str, patience: float
) -> Iterator[tuple[bool, Finding | None] | str]:
    """Yield the answer to each input; the last may be 'hang' or how the process ended."""
    global _grown
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(
        target=work, args=(maker, kind, seed, numbers, folder, theirs), daemon=True
    )
    worker.start()
    theirs.close()
    memory: list[float] = []
    ready = False
    try:
        ready = ours.poll(START) and ours.recv() == ('ready',)
        if not ready:
            raise RuntimeError(f'a worker for {kind} is not ready after {START:g} s')
        for _ in numbers:
            if not ours.poll(patience):
                yield 'hang'
                return
            _, refused, finding, held = ours.recv()
            memory += [held] if held is not None else []
            yield refused, finding
        _grown = memory[-1] - memory[len(memory) // 4] if memory else 0.0
    except EOFError:
        worker.join(10.0)
        if not ready:
            raise RuntimeError(f'a worker for {kind} cannot start') from None
        yield f'the process ended with {worker.exitcode}'
    finally:
        ours.close()
        worker.kill()
        worker.join()


def try_one(maker: Maker, kind: str, seed: int, number: int) -> Any:
    """Try one input in this process and say everything about it; return the finding, if any."""
    with tempfile.TemporaryDirectory(prefix='contact_sim_fuzz_') as folder:
        os.chdir(folder)
        inputs = maker(Path(folder))
        warnings.simplefilter('ignore')
        try:
            inputs.run(chance_of(kind, seed, number))
            print(f'accepted: {words(inputs)}')
        except Exception as error:
            print(words(inputs))
            traceback.print_exc()
            return None if isinstance(error, ALLOWED) else error
    return None
