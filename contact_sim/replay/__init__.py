"""Recordings of a run, and its exact repetition: `python -m contact_sim.replay run.npz`."""

from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Outcome, repeat

__all__ = ['Outcome', 'Recorder', 'Recording', 'repeat']
