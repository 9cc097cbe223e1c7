"""Compares a program's values with the expected ones."""

import numpy as np
import scipy.sparse
import sympy

_COMPRESSED = (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix)
_SPARSE = (*_COMPRESSED, scipy.sparse.bsr_matrix, scipy.sparse.coo_matrix)


def _differ(value, right, **tolerances):
    """Compares numbers by distance, and values whose shapes don't allow that by equality."""
    try:
        return not np.allclose(value, right, **tolerances)
    except ValueError as problem:
        print(problem)
        return not value == right


def process_symbol_in_dict(values):
    """Replaces symbols in the keys by their names. Entries of symbols move to the end."""
    named = {}
    for key, value in values.items():
        if not isinstance(key, sympy.Symbol):
            named[key] = str(value) if isinstance(value, sympy.Symbol) else value
        else:
            # A symbol below a symbol stays unchanged.
            named[str(key)] = value
    return named


def are_dicts_close(dict1, dict2, atol=1e-8, rtol=1e-5):
    """Returns true if both have the same keys, with equal or close values."""
    first, second = process_symbol_in_dict(dict1), process_symbol_in_dict(dict2)
    if first.keys() != second.keys():
        return False
    for key, value in first.items():
        right = second[key]
        if isinstance(value, (sympy.Symbol, str)):
            wrong = not value == right
        elif isinstance(value, _SPARSE):
            wrong = not np.allclose(value.toarray(), right.toarray(), atol=atol, rtol=rtol)
        else:
            wrong = _differ(value, right, atol=atol, rtol=rtol)
        if wrong:
            return False
    return True


def are_csc_matrix_close(matrix1, matrix2):
    """Returns true if two sparse matrices are close in every entry."""
    return np.allclose(matrix1.toarray(), matrix2.toarray())


def cmp_tuple_or_list(var1, var2):
    """Returns true if two sequences have equal lengths and close values. The first one's types select the comparison."""
    if len(var1) != len(var2):
        return False
    for value, right in zip(var1, var2):
        if isinstance(value, dict):
            wrong = not are_dicts_close(value, right)
        elif isinstance(value, _COMPRESSED):
            wrong = not are_csc_matrix_close(value, right)
        elif isinstance(value, bool):
            wrong = not value == right
        else:
            wrong = _differ(value, right)
        if wrong:
            return False
    return True
