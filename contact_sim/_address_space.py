"""Check the limit of the address space (`ulimit -v`) before anything large is loaded.

Below the limits that are stated here the import of NumPy or SciPy fails, or the compiler and the
middleware abort the process with a line of their own. Measured with go1 on a machine with two
cores; each core adds threads.
"""

from __future__ import annotations

import resource

OF_LIBRARY = 820_000_000
"""Bytes with which a robot can be loaded and stepped."""
OF_NODE = 1_700_000_000
"""Bytes with which the ROS node runs."""


def too_small(least: int, what: str) -> str:
    """Return what is wrong with the limit of this process, '' if nothing."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= least:
        return ''
    return (
        f'the address space of this process is limited to {limit / 1e9:.2g} GB; {what} needs '
        f'{least / 1e9:.2g} GB: ulimit -v {least // 1024} or more, or unlimited'
    )


if problem := too_small(OF_LIBRARY, 'contact_sim'):
    raise MemoryError(problem)
