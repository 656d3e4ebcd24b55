"""Memory of a contact model: in the step data of all contacts, and in rows of the active ones.

Vectors have world axes in the step data, so that they outlast a turn of the contact frame, and in
the contact frame in the rows, like everything else that laws see.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def recall(memory, frame, active, rows):
    """Fill `rows` with the memory of the active contacts, vectors in the contact frame.

    Args:
        memory: of every contact, vectors in world axes, shape (nc, 4).
        frame: rows t1, t2, n of every contact frame, shape (nc, 3, 3).
        active: 1 where the contact takes part, shape (nc,).
        rows: out, one row per active contact, shape (na, 4) or more.
    """
    k = 0
    for i in range(active.shape[0]):
        if active[i] != 0.0:
            for a in range(3):
                rows[k, a] = 0.0
                for b in range(3):
                    rows[k, a] += frame[i, a, b] * memory[i, b]
            rows[k, 3] = memory[i, 3]
            k += 1


@kernel
def remember(rows, frame, active, memory):
    """Write `rows` back into `memory`, zeros for contacts that took no part. As in `recall`."""
    k = 0
    memory[:] = 0.0
    for i in range(active.shape[0]):
        if active[i] != 0.0:
            for b in range(3):
                for a in range(3):
                    memory[i, b] += frame[i, a, b] * rows[k, a]
            memory[i, 3] = rows[k, 3]
            k += 1
