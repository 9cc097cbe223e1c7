"""Writes the demo problems of SciCode: ../scicode.jsonl and ../scicode_targets.h5.

    python3 scicode.py          (with numpy<2, scipy<1.14, sympy, h5py: ../../../sandbox/python-requirements.txt)

Problems are in scicode_problems*.py. Right values are what the right programs give here; a test's text and the value that it is
compared with come from the same expression.
"""

import ast
import json
import os

import h5py
import numpy as np
import scipy.sparse

import scicode_problems
import scicode_problems_more

# How a test compares, and what it has to import for that.
COMPARISONS = {
    "close": ("", "np.allclose({}, target)"),
    "equal": ("", "{} == target"),
    "tuple": ("from scicode.compare.cmp import cmp_tuple_or_list\n", "cmp_tuple_or_list({}, target)"),
    "dict": ("from scicode.compare.cmp import are_dicts_close\n", "are_dicts_close({}, target)"),
    "sparse": ("from scicode.compare.cmp import are_csc_matrix_close\n", "are_csc_matrix_close({}, target)"),
}


def header_and_return(code):
    """Signature and documentation, of a class with those of its constructor; and how it ends, in names alone."""
    node = ast.parse(code).body[-1]
    lines = code.split("\n")
    if isinstance(node, ast.ClassDef):
        constructor = next(part for part in node.body if isinstance(part, ast.FunctionDef))
        end = constructor.body[0].end_lineno
    else:
        end = node.body[0].end_lineno
    returns = [part.value for part in ast.walk(node) if isinstance(part, ast.Return)][-1]
    parts = returns.elts if isinstance(returns, ast.Tuple) else [returns]
    # An expression would give the answer away.
    names = [part.id if isinstance(part, ast.Name) else f"value{at}" for at, part in enumerate(parts, 1)]
    if len(names) == 1:
        names = [name.replace("value1", "value") for name in names]
    return "\n".join(lines[node.lineno - 1 : end]), "    return " + ", ".join(names)


def store(group, name, value):
    """A value in the form in which the dataset stores it."""
    if scipy.sparse.issparse(value):
        inner = group.create_group(name).create_group("sparse_matrix")
        inner["data"], inner["shape"] = value.data, value.shape
        if value.format == "coo":
            inner["row"], inner["col"] = value.row, value.col
        else:
            inner["indices"], inner["indptr"] = value.indices, value.indptr
    elif isinstance(value, dict):
        inner = group.create_group(name)
        for key, part in value.items():
            inner[str(key)] = part
    elif isinstance(value, list):
        inner = group.create_group(name).create_group("list")
        for at, part in enumerate(value, 1):
            inner[f"var{at}"] = part
    else:
        group[name] = value


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    rows = []
    with h5py.File(os.path.join(here, "..", "scicode_targets.h5"), "w", libver="latest") as file:
        problems = scicode_problems.PROBLEMS + scicode_problems_more.PROBLEMS
        for number, (name, about, imports, steps) in enumerate(problems, 1001):
            scope = {}
            exec(imports, scope)
            sub_steps = []
            for at, (description, background, code, tests) in enumerate(steps, 1):
                code = code.strip("\n")
                exec(code, scope)
                texts = []
                for index, (setup, expression, comparison) in enumerate(tests, 1):
                    exec(setup, scope)
                    value = eval(expression, scope)
                    group = file.create_group(f"{number}.{at}/test{index}")
                    for part, one in enumerate(value if isinstance(value, tuple) else [value], 1):
                        store(group, f"var{part}", one)
                    imported, compare = COMPARISONS[comparison]
                    texts.append(f"{imported}{setup}\nassert {compare.format(expression)}".lstrip("\n"))
                header, returns = header_and_return(code)
                sub_steps.append({
                    "step_number": f"{number}.{at}",
                    "step_description_prompt": description,
                    "step_background": f"Background\n{background}",
                    "ground_truth_code": code,
                    "function_header": header,
                    "test_cases": texts,
                    "return_line": returns,
                })
            rows.append({
                "problem_id": str(number),
                "problem_name": name,
                "problem_description_main": about,
                "required_dependencies": imports,
                "sub_steps": sub_steps,
            })
    with open(os.path.join(here, "..", "scicode.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(len(rows), "problems,", sum(len(row["sub_steps"]) for row in rows), "steps")


main()
