"""Memory of a contact model: in the step data of all contacts, and in rows of the active ones.

Vectors have world axes in the step data, so that they outlast a turn of the contact frame, and in
the contact frame in the rows, like everything else that laws see.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def recall(memory, frame, row_of, n, rows):
    """Fill `rows` with the memory of the contacts of a problem, vectors in the contact frame.

    Args:
        memory: of every contact, vectors in world axes, shape (nc, 4).
        frame: rows t1, t2, n of every contact frame, shape (nc, 3, 3).
        row_of: row of the step data behind each row of the problem, three for each contact.
        n: number of contacts of the problem.
        rows: out, one row per contact, shape (n, 4) or more.
    """
    for k in range(n):
        i = row_of[3 * k] // 3
        for a in range(3):
            rows[k, a] = 0.0
            for b in range(3):
                rows[k, a] += frame[i, a, b] * memory[i, b]
        rows[k, 3] = memory[i, 3]


@kernel
def remember(rows, frame, row_of, n, memory):
    """Write `rows` back into `memory`. As in `recall`."""
    for k in range(n):
        i = row_of[3 * k] // 3
        for b in range(3):
            memory[i, b] = 0.0
            for a in range(3):
                memory[i, b] += frame[i, a, b] * rows[k, a]
        memory[i, 3] = rows[k, 3]
