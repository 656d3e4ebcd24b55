"""Types of arrays in annotations."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
"""Indices that compiled kernels read."""
IndexArray = NDArray[np.intp]
"""Indices for NumPy."""
Mask = NDArray[np.bool_]
Vector = tuple[float, float, float]
"""A 3-vector inside kernels."""
