"""Checks that split tests have the same outcome as whole tests. Takes the folder of the job's Python files."""

import importlib.util
import os
import sys
import threading

import numpy as np

folder = sys.argv[1]
HEADERS = ["def f(x):", "class Model:\n    def __init__(self):"]
DEPENDENCIES = "import numpy as np\nimport scipy.sparse as sp\nimport sympy"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(name, module):
    sys.modules[name] = module
    return module


package = type(sys)
install("scicode", package("scicode"))
install("scicode.compare", package("scicode.compare"))
install("scicode.compare.cmp", loaded("cmp"))
values_in, values_out = os.pipe()
os.environ["SCICODE_VALUES"] = str(values_out)
split, grade, send = loaded("split"), loaded("grade"), loaded("send")


def names():
    made = {"__name__": "__main__"}
    exec(DEPENDENCIES, made)
    return made


def officially(program, tests, targets):
    made = names()
    try:
        exec(program, made)
        for test, target in zip(tests, targets):
            made["target"] = target
            exec(test, made)
    except Exception as error:
        return False, repr(error)
    return True, ""


def isolated(program, tests, targets):
    parts = split.split(DEPENDENCIES, HEADERS, tests)
    assert parts, f"was not split: {tests}"
    assert "target" not in parts[0], parts[0]
    outcome = []

    def compare():
        outcome.append(grade.graded(parts[1], {**names(), "targets": targets}, values_in))

    # A test has few values, so the pipe can hold them if the comparison ends early.
    comparing = threading.Thread(target=compare)
    comparing.start()
    made = names()
    try:
        exec(program, made)
        made["__send_to_grader"] = send.send
        exec(parts[0], made)
        error = ""
    except Exception as raised:
        error = repr(raised)
        os.write(values_out, (1 << 40).to_bytes(8, "big"))  # end of the values
    comparing.join(60)
    assert outcome, f"waits for values: {tests}, {program}"
    os.set_blocking(values_in, False)
    try:
        while os.read(values_in, 1 << 16):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(values_in, True)
    return not error and outcome[0][0] == "pass", error or outcome[0]


CMP = "from scicode.compare.cmp import cmp_tuple_or_list, are_dicts_close, are_csc_matrix_close\n"
# A test, the expected value, programs that pass it, and programs that don't.
FORMS = [
    ("assert np.allclose(f(1), target)", 2.5,
     ["def f(x): return 2.5", "def f(x): return [2.5]", "def f(x): return np.full((2, 2), 2.5)", "def f(x): return np.float32(2.5)",
      "def f(x): return np.array([2.5], object).astype(complex)", "def f(x): return np.ma.masked_array([2.5, 7], [0, 1])",
      "def f(x): return np.matrix([[2.5]])", "def f(x): return 2.5 + 1e-12",
      "class A:\n    def __array__(self, *_, **__): return np.array(2.5)\ndef f(x): return A()"],
     ["def f(x): return 2.6", "def f(x): return None", "def f(x): return '2.5'", "def f(x): return object()", "def f(x): raise OSError",
      "def f(x): return float('nan')", "def f(x): return sympy.Symbol('a')", "def f(x): return [2.5, [1]]", "def f(x): return {}"]),
    ("for i in range(2):\n    y = f(i)\n    assert np.allclose(y, target[i])", [1.0, 2.0],
     ["def f(x): return x + 1"], ["def f(x): return 1"]),
    ("for i in range(2):\n    assert np.allclose(f(i), target[i])", [1.0, 2.0], ["def f(x): return x + 1"], ["def f(x): return 1"]),
    ("x = f(0)\nassert abs(x - target) < 1e-3 and isinstance(x, float)", 2.0,
     ["def f(x): return 2.0"], ["def f(x): return 2", "def f(x): return 2.1"]),
    ("np.random.seed(3)\nx = np.random.rand(3)\nassert np.allclose(f(x), target, atol=1e-9)", 0.5507979025745755,
     ["def f(x): return x[0]"], ["def f(x): return x[1]"]),
    ("x = np.zeros(2)\nf(x)\nassert np.allclose(x, target)", [1.0, 2.0],
     ["def f(x): x[:] = [1, 2]"], ["def f(x): return np.array([1, 2])"]),
    ("x = [1]\nx.append(2)\ny = x\nf(y)\nassert x == target", [1, 2, 3], ["def f(x): x.append(3)"], ["def f(x): x.append(4)"]),
    ("tolerance = 1e-2\nassert np.allclose(f(1), target, atol=tolerance)", 1.0,
     ["def f(x): return 1.001"], ["tolerance = 9\ndef f(x): return 2", "def f(x): return 1.5"]),
    ("assert (f(1) == target).all()", np.array([1, 2]), ["def f(x): return np.array([1, 2])"], ["def f(x): return np.array([1, 3])"]),
    ("def g(x): return 2 * x\nassert np.allclose(f(g), target)", 4.0, ["def f(g): return g(2)"], ["def f(g): return g(3)"]),
    ("a, b = target\nassert np.allclose(f(1), a)\nassert f(2) == b", (1.0, "w"),
     ["def f(x): return 1.0 if x == 1 else 'w'"], ["def f(x): return 1.0"]),
    ("model = Model()\nmodel.value += 1\nassert np.allclose(model.value, target)", 3.0,
     ["class Model:\n    value = 2"], ["class Model:\n    value = 3"]),
    ("assert np.all([np.allclose(a, b) for a, b in zip(f(1), target)])", [1.0, [2.0, 3.0]],
     ["def f(x): return 1.0, np.array([2, 3])"], ["def f(x): return 2.0, 1"]),
    (CMP + "assert cmp_tuple_or_list(f(1), target)", (1.0, True, [1.0, 2.0], {"a": 1.0}),
     ["def f(x): return [1, True, np.array([1, 2]), {'a': 1}]", "def f(x): return 1.0, 1, (1, 2), {sympy.Symbol('a'): 1.0}"],
     ["def f(x): return 1.0, True", "def f(x): return 1.0, False, [1, 2], {'a': 1}", "def f(x): return 1, True, [1, 2], {'b': 1}",
      "def f(x): return None, True, [1, 2], {'a': 1}", "def f(x): return iter(())", "def f(x): return 1, True, 'x', {'a': 1}"]),
    (CMP + "assert are_dicts_close(f(1), target)", {"a": 2.0, 1.0: "w"},
     ["def f(x): return {'a': 2, 1: 'w'}", "def f(x): return {sympy.Symbol('a'): np.float64(2), 1.0: sympy.Symbol('w')}"],
     ["def f(x): return {'a': 2}", "def f(x): return {'a': 2, 1: 'v'}", "def f(x): return []"]),
    (CMP + "assert are_csc_matrix_close(f(1), target)\nassert f(1).shape == (1, 2)", None,
     ["def f(x): return sp.lil_matrix([[1, 0]])", "def f(x): return sp.bsr_matrix([[1, 0]])", "def f(x): return sp.dok_matrix([[1.0, 0]])",
      "def f(x): return sp.coo_array([[1, 0]])", "def f(x): return sp.csc_matrix([[1, 0]])", "def f(x): return sp.dia_matrix([[1, 0]])"],
     ["def f(x): return np.array([[1, 0]])", "def f(x): return sp.csr_matrix([[1, 1]])", "def f(x): return sp.csr_matrix([[1], [0]])"]),
    ("assert f(1) == target", "word", ["def f(x): return 'word'", "def f(x): return np.str_('word')"],
     ["def f(x): return b'word'", "def f(x): return 'Word'", "def f(x): return sympy.Symbol('word')"]),
    ("assert str(f(1)) == target", "x + 1", ["def f(x): return sympy.Symbol('x') + 1"], ["def f(x): return sympy.Symbol('x')"]),
    ("assert len(f(1)) == target and sorted(f(1)) == [1, 2]", 2, ["def f(x): return {1, 2}"], ["def f(x): return {1, 3}"]),
    ("assert f(1) == target", 3, ["def f(x): return sympy.Integer(3)", "def f(x): return np.longdouble(3)", "def f(x): return 3 + 0j",
                                  "def f(x): return sympy.Rational(6, 2)"], ["def f(x): return '3'", "def f(x): return [3]"]),
    ("assert not np.allclose(f(1), target)", 3, ["def f(x): return 4"], ["def f(x): return 3"]),
    ("assert np.linalg.norm(f(1) - target) < 1e-6", np.ones(2), ["def f(x): return np.ones(2)"], ["def f(x): return np.zeros(2)"]),
    ("y = f(1)\nassert f(2) == 4\nassert np.array_equal(y, target)", np.ones(1),
     ["def f(x): return np.ones(1) if x == 1 else 4"], ["def f(x): return np.ones(1)"]),
]  # fmt: skip

# Tests that pass expected values to the model's code, let it decide what is compared, or let a factor of it hide them.
NOT_SPLIT = [
    "assert f(target) == 1", "assert np.allclose(f(1) * target, 0)", "if f(1):\n    assert np.allclose(f(1), target)",
    "for x in f(1):\n    assert x == target", "def check(x): return np.allclose(f(x), target)\nassert check(1)",
    "assert f(1) or f(2) == target", "assert np.allclose(*f(1), target)", "x = f(1)", "with f(1):\n    assert x == target",
    "target2 = target\nassert f(target2)", "x = [0]\nf(x)\nassert np.allclose(f(1), target * x)", "try:\n    assert f(1) == target\nexcept OSError:\n    pass",
    "while True:\n    assert f(1) == target\n    break", "f(", "exec('assert f(1) == target')", "from numpy import *\nassert allclose(f(1), target)",
    "f(1).x = target", "f.g[0] = target\nassert f(1) == target", "assert isinstance(f(1), float)", "",
]  # fmt: skip


def forms():
    import scipy.sparse

    for test, right, passing, failing in FORMS:
        right = scipy.sparse.csr_matrix([[1.0, 0.0]]) if right is None else right
        for program in passing + failing:
            expected = program in passing
            for judged in (officially, isolated):
                passes, why = judged(program, [test], [right])
                assert passes == expected, f"{judged.__name__}: {test!r}, {program!r}: {why}"


def forged():
    replaced = "np.allclose = lambda *_, **__: True\ndef f(x): return 7"
    kept = np.allclose
    try:
        assert officially(replaced, ["assert np.allclose(f(1), target)"], [3])[0]
    finally:
        np.allclose = kept
    equal = "class Equal:\n    def __eq__(self, other): return True\ndef f(x): return Equal()"
    assert officially(equal, ["assert f(1) == target"], [3])[0]
    assert not isolated(equal, ["assert f(1) == target"], [3])[0]
    # An empty array has no element that could be wrong, so the same program passes officially for any expected value.
    near = "assert np.allclose(f(1), target)"
    empty = "def f(x): return np.empty((0, 1, 1, 1))"
    listed = CMP + "assert cmp_tuple_or_list([f(1)], target)"
    for program, test, right in [
        (empty, near, 3.0), (empty, near, np.ones((2, 3, 4))), (empty, "assert (f(1) == target).all()", np.ones(2)),
        (empty, "assert np.linalg.norm(f(1) - target) < 1e-6", 3.0), (empty, listed, [3.0]),
        ("def f(x): return []", near, 3.0), ("def f(x): return range(0)", near, 3.0),
        ("def f(x): return {'a': []}", CMP + "assert are_dicts_close(f(1), target)", {"a": 3.0}),
    ]:  # fmt: skip
        assert officially(program, [test], [right])[0], (program, test)
        assert not isolated(program, [test], [right])[0], (program, test)
        assert "empty" in isolated(program, [test], [right])[1][1], (program, test)
    # If an expected value is empty, the value compared with it may be empty, too.
    for judged in (officially, isolated):
        assert judged("def f(x): return np.empty((0, 2))", [near], [np.empty((0, 2))])[0]
    for message in (
        b"", b"1", b"[]", b"{}", b'["eval", "1"]', b'["array", "O", [1], ""]', b'["array", "|V8", [1], "AAAAAAAAAAA="]',
        b'["array", "<f8", [9], ""]', b'["sparse", "csr", false, [1, 1], 1]', b'["sparse", "__class__", false, [1, 1], [], [], []]',
        b'["sympy", "Integer", "__import__", 1]', b'["sympy", "Float", "x", 1]', b'["sympy", "sympify", "1", 1]', b'["int", "x"]',
        b'["dict", [[["list", []], ["none"]]]]', b'["scalar", "objects", [2], []]', b"[" * 30_000,
    ):  # fmt: skip
        os.write(values_out, len(message).to_bytes(8, "big") + message)
        kind, why = grade.graded("assert __receive_from_program() == 1", {}, values_in)
        assert kind == "fail" and why.startswith("Malformed"), (message[:80], kind, why)


forms()
for text in NOT_SPLIT:
    assert split.split(DEPENDENCIES, HEADERS, [text]) is None, text
forged()
print("all is as it should be")
