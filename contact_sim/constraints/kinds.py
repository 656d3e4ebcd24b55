"""What the kernels know of a constraint: codes, and the places of its numbers."""

POINT, FRAME, JOINTS, GIVEN = range(4)
"""Kinds of rows: relative position (3), relative placement (6), a sum over joints (1), given."""
PROJECTED, DAMPED, DRIVEN, DRIVEN_SLOWLY = range(4)
"""Laws: position kept by projection or by Baumgarte, velocity reached at once or by its α."""
KIND, FIRST, COUNT, UNBOUNDED, A, B, DOF_A, DOF_B = range(8)
"""Indices: kind, first row, rows, whether the first joint has no bounds, then two bodies and their
last dofs, or coordinates and dofs of two joints."""
LAW, KP, KD, VALUE, SHARE_A, SHARE_B = range(6)
"""Numbers: law, its feedback, what is asked of a joint, shares of two joints."""
