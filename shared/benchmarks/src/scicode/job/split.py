"""Splits the tests of a step into a part for the program's process and a part for the process with the expected values.

A test such as `assert np.allclose(area(2.0), target)` becomes `send(area(2.0))` for the program's process, and `assert
np.allclose(receive(), target)` for the grader's. The result depends on the dataset alone, never on the model's code.
Tests that can't be split, such as one that passes the expected value to the model's function, are graded in official
mode: `split` returns None for them.

Every name has one kind:

| kind | origin | exists |
| --- | --- | --- |
| CONSTANT | imports, literals and functions of the test itself | in both processes |
| SHARED | the same, but its value can be changed | in both; only in the program's once the program may have changed it |
| PROGRAM | the model's code, or random numbers | in the program's process |
| TARGET | the expected values | in the grader's process |
"""

import ast
import builtins
import re

SEND = "__send_to_grader"
RECEIVE = "__receive_from_program"
TARGETS = ("target", "targets", "process_hdf5_to_tuple")

CONSTANT, SHARED, PROGRAM, TARGET = "constant", "shared", "program", "target"

# Builtins whose result or effect depends on the process.
LOCAL_BUILTINS = {
    *("eval exec compile open input globals locals vars dir breakpoint exit quit help memoryview".split()),
    *("__import__ __build_class__ __loader__ __spec__ __name__ __doc__ __package__ __debug__".split()),
}
# Comparisons that run in the grader's process even if no expected value is involved.
COMPARISONS = {
    *("allclose isclose array_equal all any abs".split()),
    *("cmp_tuple_or_list are_dicts_close are_csc_matrix_close".split()),
}
LITERALS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


class NotSplit(Exception):
    """The test can't be split."""


def stored_names(node):
    """Returns the names that a statement or expression binds, at any depth."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.add(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(part.name)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            names.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            names |= imported_names(part)
    return names


def imported_names(statement):
    names = set()
    for alias in statement.names:
        if alias.name == "*":
            raise NotSplit("star import")
        names.add(alias.asname or alias.name.partition(".")[0])
    return names


def free_names(node):
    """Returns the names that a statement or expression looks up outside itself."""
    if isinstance(node, ast.Name):
        return {node.id}
    names = set()
    for child in ast.iter_child_nodes(node):
        names |= free_names(child)
    if isinstance(node, SCOPES):
        arguments = set()
        if not isinstance(node, ast.ClassDef):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            arguments = {argument.arg for argument in every if argument}
        body = node.body if isinstance(node.body, list) else [node.body]
        names -= arguments.union(*(stored_names(part) for part in body))
    elif isinstance(node, COMPREHENSIONS):
        names -= set().union(*(stored_names(generator.target) for generator in node.generators))
    return names


def call_of(name, *arguments):
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(arguments), keywords=[])


class Splitter:
    def __init__(self, dependencies, headers):
        self.kinds = {name: CONSTANT for name in dir(builtins) if name not in LOCAL_BUILTINS}
        for statement in ast.parse(dependencies).body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                try:
                    self.kinds.update(dict.fromkeys(imported_names(statement), CONSTANT))
                except NotSplit:
                    pass  # names from a star import count as the program's
        for header in headers:
            for name in re.findall(r"\b(?:def|class)\s+(\w+)", header):
                self.kinds[name] = PROGRAM
        self.kinds.update(dict.fromkeys(TARGETS, TARGET))
        self.compared = 0

    def kinds_in(self, node):
        found = {self.kinds.get(name, PROGRAM) for name in free_names(node)}
        if "random" in ast.unparse(node):
            found.add(PROGRAM)
        return found

    def touched(self, node):
        """Marks values as changed that were passed to the model's code: only the program's process knows them now."""
        if PROGRAM in self.kinds_in(node) and SHARED in self.kinds_in(node):
            for name, kind in self.kinds.items():
                if kind == SHARED:
                    self.kinds[name] = PROGRAM

    # Expressions

    def projected(self, node, sent, forced=False):
        """Returns the expression as the grader evaluates it. Adds to `sent` what the program's process has to send for
        it."""
        kinds = self.kinds_in(node)
        if PROGRAM not in kinds:
            if TARGET not in kinds and SHARED in kinds:
                # Whether changed or not, the program's process has the value.
                return self.received(node, sent)
            return node
        if TARGET not in kinds and not (forced and self.is_comparison(node)):
            return self.received(node, sent)
        part = lambda inner: self.projected(inner, sent)
        if isinstance(node, ast.Call):
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                raise NotSplit("starred argument")
            if any(keyword.arg is None for keyword in node.keywords):
                raise NotSplit("starred argument")
            if PROGRAM not in self.kinds_in(node.func):
                func = node.func
            elif isinstance(node.func, ast.Attribute) and TARGET in self.kinds_in(node.func.value):
                func = ast.Attribute(value=part(node.func.value), attr=node.func.attr, ctx=ast.Load())
            elif isinstance(node.func, ast.Attribute) and self.is_comparison(node.func.value):
                func = ast.Attribute(value=self.projected(node.func.value, sent, True), attr=node.func.attr, ctx=ast.Load())
            else:
                raise NotSplit("the model's function gets a right value")
            keywords = [ast.keyword(arg=keyword.arg, value=part(keyword.value)) for keyword in node.keywords]
            return ast.Call(func=func, args=[part(argument) for argument in node.args], keywords=keywords)
        if isinstance(node, ast.Compare):
            return ast.Compare(left=part(node.left), ops=node.ops, comparators=[part(right) for right in node.comparators])
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return ast.BoolOp(op=node.op, values=[self.projected(value, sent, forced) for value in node.values])
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(op=node.op, operand=self.projected(node.operand, sent, forced))
        # Other operations could let a value of the program cancel the expected one, as a factor of 0 does.
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return ast.BinOp(left=part(node.left), op=node.op, right=part(node.right))
        if isinstance(node, ast.Subscript) and PROGRAM not in self.kinds_in(node.slice):
            return ast.Subscript(value=part(node.value), slice=node.slice, ctx=ast.Load())
        if isinstance(node, ast.Attribute):
            return ast.Attribute(value=part(node.value), attr=node.attr, ctx=ast.Load())
        if isinstance(node, (ast.Tuple, ast.List)) and not any(isinstance(value, ast.Starred) for value in node.elts):
            return type(node)(elts=[part(value) for value in node.elts], ctx=ast.Load())
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and len(node.generators) == 1:
            generator = node.generators[0]
            local = stored_names(generator.target)
            inner = set().union(*(free_names(inner) for inner in [node.elt, *generator.ifs])) - local
            if all(self.kinds.get(name, PROGRAM) in (CONSTANT, TARGET) for name in inner):
                iterated = ast.comprehension(
                    target=generator.target, iter=part(generator.iter), ifs=generator.ifs, is_async=generator.is_async
                )
                return type(node)(elt=node.elt, generators=[iterated])
        raise NotSplit(type(node).__name__)

    def received(self, node, sent):
        sent.append(node)
        return call_of(RECEIVE)

    def is_comparison(self, node):
        if isinstance(node, ast.Compare):
            return not any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            return name in COMPARISONS and (
                PROGRAM not in self.kinds_in(node.func)
                or (isinstance(node.func, ast.Attribute) and self.is_comparison(node.func.value))
            )
        if isinstance(node, ast.BoolOp):
            return isinstance(node.op, ast.And) and all(map(self.is_comparison, node.values))
        return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and self.is_comparison(node.operand)

    # Statements: each method returns the statements for the program's process and for the grader's

    def block(self, statements):
        program, grader = [], []
        for statement in statements:
            for_program, for_grader = self.statement(statement)
            program += for_program
            grader += for_grader
        return program, grader

    def statement(self, node):
        method = getattr(self, f"of_{type(node).__name__.lower()}", self.of_other)
        return method(node)

    def of_import(self, node):
        if getattr(node, "module", None) == "__future__":
            raise NotSplit("__future__")
        self.kinds.update(dict.fromkeys(imported_names(node), CONSTANT))
        return [node], [node]

    of_importfrom = of_import

    def of_pass(self, node):
        return [node], []

    def of_assign(self, node):
        return self.assigned(node, node.targets, node.value)

    def of_annassign(self, node):
        if node.value is None:
            return [], []
        return self.assigned(node, [node.target], node.value)

    def of_augassign(self, node):
        return self.assigned(node, [node.target], node, is_changed=True)

    def assigned(self, node, targets, value, is_changed=False):
        kinds = self.kinds_in(value)
        names = set().union(*(stored_names(target) for target in targets))
        # Objects whose parts are assigned to.
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, (ast.Attribute, ast.Subscript)):
                    kinds |= self.kinds_in(target)
                    is_changed = True
        if TARGET not in kinds:
            if PROGRAM in kinds:
                self.touched(node)
                if is_changed:
                    names |= {name for target in targets for name in free_names(target)}
                self.kinds.update(dict.fromkeys(names, PROGRAM))
                return [node], []
            is_literal = all(isinstance(part, LITERALS) for part in ast.walk(value))
            self.kinds.update(dict.fromkeys(names, CONSTANT if is_literal else SHARED))
            return [node], [node]
        if is_changed:
            if PROGRAM in kinds or SHARED in kinds:
                raise NotSplit("a right value is stored in something else")
            return [], [node]
        sent = []
        value = self.projected(value, sent)
        self.touched_by(sent)
        self.kinds.update(dict.fromkeys(names, TARGET))
        assignment = ast.Assign(targets=targets, value=value)
        return self.sends(sent), [assignment]

    def of_expr(self, node):
        return self.evaluated(node, node.value, lambda value: ast.Expr(value=value))

    def of_assert(self, node):
        kinds = self.kinds_in(node.test)
        if TARGET in kinds or (PROGRAM in kinds and self.is_comparison(node.test)):
            self.compared += 1
            sent = []
            test = self.projected(node.test, sent, forced=True)
            self.touched_by(sent)
            return self.sends(sent), [ast.Assert(test=test, msg=None)]
        self.touched(node.test)
        return [ast.Assert(test=node.test, msg=None)], []

    def evaluated(self, node, value, made):
        kinds = self.kinds_in(value)
        if TARGET not in kinds:
            if PROGRAM in kinds:
                self.touched(value)
                return [node], []
            return [node], [node]
        sent = []
        value = self.projected(value, sent)
        self.touched_by(sent)
        return self.sends(sent), [made(value)]

    def sends(self, sent):
        return [ast.Expr(value=call_of(SEND, node)) for node in sent]

    def touched_by(self, sent):
        for node in sent:
            self.touched(node)

    def of_for(self, node):
        if not self.is_compared(node):
            return self.of_other(node)
        kinds = self.kinds_in(node.iter)
        if TARGET in kinds:
            names = stored_names(node.target)
            inner = free_names(ast.Module(body=node.body + node.orelse, type_ignores=[])) - names - stored_names(node)
            kinds |= {self.kinds.get(name, PROGRAM) for name in inner}
            if kinds & {PROGRAM, SHARED}:
                raise NotSplit("a loop over right values")
            self.kinds.update(dict.fromkeys(stored_names(node), TARGET))
            self.compared += 1
            return [], [node]
        if kinds - {CONSTANT} or node.orelse:
            raise NotSplit("a loop with comparisons")
        # Both processes run the loop. It is analyzed twice, because facts about names at its end also hold at its
        # start.
        if any(isinstance(part, (ast.Break, ast.Continue, ast.Return)) for part in ast.walk(node)):
            raise NotSplit("a loop that is left early")
        self.kinds.update(dict.fromkeys(stored_names(node.target), CONSTANT))
        self.block(node.body)
        program, grader = self.block(node.body)
        looped = lambda body: [ast.For(target=node.target, iter=node.iter, body=body or [ast.Pass()], orelse=[])]
        return looped(program), looped(grader)

    def is_compared(self, node):
        return TARGET in self.kinds_in(node) or any(isinstance(part, ast.Assert) for part in ast.walk(node))

    def of_functiondef(self, node):
        kinds = self.kinds_in(node)
        if TARGET in kinds:
            if kinds & {PROGRAM, SHARED}:
                raise NotSplit("a function that uses right values")
            self.kinds[node.name] = TARGET
            return [], [node]
        if kinds & {PROGRAM, SHARED}:
            self.touched(node)
            self.kinds[node.name] = PROGRAM
            return [node], []
        self.kinds[node.name] = CONSTANT
        return [node], [node]

    def of_other(self, node):
        """Leaves a statement whole, in the program's process."""
        if self.is_compared(node):
            raise NotSplit(type(node).__name__)
        # A value that the statement may change is known in only one process afterwards.
        for name in free_names(node):
            if self.kinds.get(name) == SHARED:
                self.kinds[name] = PROGRAM
        self.touched(node)
        self.kinds.update(dict.fromkeys(stored_names(node), PROGRAM))
        return [node], []


def source_of(statements):
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=statements, type_ignores=[])))


def split(dependencies, headers, tests):
    """Returns the sources for the program's process and for the grader's; None if the tests can't be split."""
    try:
        splitter = Splitter(dependencies, headers)
        program, grader = [], []
        for at, test in enumerate(tests):
            splitter.kinds["target"] = TARGET
            grader += ast.parse(f"target = targets[{at}]").body
            before = splitter.compared
            for_program, for_grader = splitter.block(ast.parse(test).body)
            if splitter.compared == before:
                raise NotSplit("a test without a comparison")
            program += for_program
            grader += for_grader
        return source_of(program), source_of(grader)
    except (NotSplit, SyntaxError, ValueError, RecursionError):
        return None
