"""Reads the expected values of a step's tests from an HDF5 file."""

import h5py
import numpy as np
import scipy.sparse


def _text_or_value(dataset):
    value = dataset[()]
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _sparse(group):
    shape = tuple(group["shape"][()])
    data = group["data"][()]
    if "row" in group and "col" in group:
        return scipy.sparse.coo_matrix((data, (group["row"][()], group["col"][()])), shape=shape)
    parts = (data, group["indices"][()], group["indptr"][()])
    if "blocksize" in group:
        return scipy.sparse.bsr_matrix(parts, shape=shape, blocksize=tuple(group["blocksize"][()]))
    # Matrices stored by columns are also read by rows, because the tests were made that way.
    return scipy.sparse.csr_matrix(parts, shape=shape)


def _number_or_text(key):
    try:
        return float(key)
    except ValueError:
        return key


def _dictionary(group):
    values = {}
    for key, member in group.items():
        if isinstance(member, h5py.Group):
            values[key] = _sparse(member["sparse_matrix"])
            continue
        value = _text_or_value(member)
        # A string key stays a string.
        values[key if isinstance(value, str) else _number_or_text(key)] = value
    return values


def _group(group):
    # The first key in HDF5's alphabetical order decides. An empty group is None.
    for first in group.keys():
        if first == "list":
            return [member[()] for member in group["list"].values()]
        if first == "sparse_matrix":
            return _sparse(group["sparse_matrix"])
        return _dictionary(group)
    return None


def _value(member):
    return _group(member) if isinstance(member, h5py.Group) else _text_or_value(member)


def process_hdf5_to_tuple(step_id, test_num, h5py_file="test_data.h5"):
    """Returns the value of each test: a single value, or a tuple in the alphabetical order of the keys."""
    found = []
    with h5py.File(h5py_file, "r") as file:
        for number in range(1, test_num + 1):
            path = f"{step_id}/test{number}"
            group = file[path]
            if not isinstance(group, h5py.Group):
                raise FileNotFoundError(f"{path} is not a group of values")
            values = [_value(group[key]) for key in group.keys()]
            found.append(values[0] if len(values) == 1 else tuple(values))
    return found
