"""Demo problems of SciCode, second half; see scicode_problems.py."""

NUMPY = "import numpy as np\n"

PROBLEMS = [
    (
        "Dose_and_decay",
        "A substance decays into another one that decays as well.",
        NUMPY,
        [
            (
                "Write a function for the decay constant of a half-life.",
                "The constant is ln 2 over the half-life.",
                '''
def decay_constant(half_life):
    """Decay constant.
    Input: half_life: float
    Output: float in the inverse unit
    """
    return np.log(2) / half_life
''',
                [
                    ("", "decay_constant(5.27)", "close"),
                    ("", "decay_constant(1.0)", "close"),
                ],
            ),
            (
                "Write a function for the amounts of mother and daughter at given times when only the mother is there at first.",
                "By Bateman, the daughter has N0 k1 / (k2 - k1) (exp(-k1 t) - exp(-k2 t)); the half-lives differ.",
                '''
def bateman(amount, half_life_1, half_life_2, times):
    """Amounts of both at each time.
    Inputs: amount: float; half_life_1, half_life_2: different floats; times: sequence of floats
    Output: array of shape (2, number of times)
    """
    k1, k2 = decay_constant(half_life_1), decay_constant(half_life_2)
    times = np.asarray(times, dtype=float)
    mother = amount * np.exp(-k1 * times)
    daughter = amount * k1 / (k2 - k1) * (np.exp(-k1 * times) - np.exp(-k2 * times))
    return np.array([mother, daughter])
''',
                [
                    ("", "bateman(100.0, 2.0, 5.0, [0.0, 1.0, 10.0])", "close"),
                    ("", "bateman(1.0, 8.0, 0.5, np.linspace(0, 4, 5))", "close"),
                ],
            ),
            (
                "Write a function for the time at which there is most of the daughter, and how much there is then.",
                "The daughter is at its most when t = ln(k2 / k1) / (k2 - k1).",
                '''
def daughter_peak(amount, half_life_1, half_life_2):
    """Time and amount of the daughter's maximum.
    Inputs: as in the step before
    Output: tuple of two floats
    """
    k1, k2 = decay_constant(half_life_1), decay_constant(half_life_2)
    time = np.log(k2 / k1) / (k2 - k1)
    return float(time), float(bateman(amount, half_life_1, half_life_2, [time])[1, 0])
''',
                [
                    ("", "daughter_peak(100.0, 2.0, 5.0)", "tuple"),
                    ("", "daughter_peak(7.0, 8.0, 0.5)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "Diffusion_rod",
        "Heat in a rod, step by step in time.",
        "import numpy as np\nimport scipy.sparse\nimport scipy.sparse.linalg\n",
        [
            (
                "Write a function for the matrix of second differences with zero values at both ends, by rows (CSR).",
                "It has -2 on the diagonal and 1 beside it, divided by the square of the spacing.",
                '''
def second_difference(n, spacing):
    """Matrix of second differences.
    Inputs: n: int, inner points; spacing: float
    Output: sparse matrix in CSR form of shape (n, n)
    """
    ones = np.ones(n - 1)
    matrix = scipy.sparse.diags([ones, -2 * np.ones(n), ones], [-1, 0, 1])
    return scipy.sparse.csr_matrix(matrix / spacing**2)
''',
                [
                    ("", "second_difference(5, 0.5)", "sparse"),
                    ("", "second_difference(3, 1.0)", "sparse"),
                ],
            ),
            (
                "Write a function for one step of the method of Crank and Nicolson.",
                "With r = D dt / 2 and the matrix L one solves (1 - r L) u_next = (1 + r L) u.",
                '''
def crank_nicolson(u, diffusivity, spacing, step):
    """Temperatures after one step in time.
    Inputs: u: array of temperatures at inner points; diffusivity, spacing, step: floats
    Output: array like u
    """
    matrix = second_difference(len(u), spacing)
    one = scipy.sparse.identity(len(u), format="csc")
    r = diffusivity * step / 2
    return scipy.sparse.linalg.spsolve((one - r * matrix).tocsc(), (one + r * matrix) @ u)
''',
                [
                    ("u = np.sin(np.pi * np.arange(1, 10) / 10)", "crank_nicolson(u, 1.0, 0.1, 0.01)", "close"),
                    ("u = np.array([0.0, 1.0, 0.0, 2.0])", "crank_nicolson(u, 0.5, 1.0, 0.2)", "close"),
                ],
            ),
            (
                "Write a function that gives the total heat at the start and after each of several steps.",
                "The total is the sum of the temperatures times the spacing.",
                '''
def heat_over_time(u, diffusivity, spacing, step, steps):
    """Total heat, the start included.
    Inputs: as in the step before; steps: int
    Output: array of steps + 1 floats
    """
    heat = [np.sum(u) * spacing]
    for _ in range(steps):
        u = crank_nicolson(u, diffusivity, spacing, step)
        heat.append(np.sum(u) * spacing)
    return np.array(heat)
''',
                [
                    ("u = np.sin(np.pi * np.arange(1, 10) / 10)", "heat_over_time(u, 1.0, 0.1, 0.01, 5)", "close"),
                    ("u = np.ones(6)", "heat_over_time(u, 0.1, 0.5, 0.05, 3)", "close"),
                ],
            ),
        ],
    ),
    (
        "Spectral_line",
        "Fit a line in a noisy spectrum.",
        "import numpy as np\nfrom scipy.optimize import curve_fit\n",
        [
            (
                "Write a function for a Lorentzian line on a constant ground.",
                "The line is A w^2 / ((x - x0)^2 + w^2), where w is half its width at half height.",
                '''
def lorentzian(x, height, centre, width, ground):
    """Line plus ground.
    Inputs: x: array; height, centre, width, ground: floats
    Output: array like x
    """
    return height * width**2 / ((np.asarray(x) - centre) ** 2 + width**2) + ground
''',
                [
                    ("", "lorentzian(np.linspace(-2, 2, 5), 3.0, 0.5, 0.4, 0.1)", "close"),
                    ("", "lorentzian([1.0], 2.0, 1.0, 0.2, 0.0)", "close"),
                ],
            ),
            (
                "Write a function that fits the line by least squares, starting from the highest point.",
                "Start with the height above the lowest point, its place, a width of a tenth of the range, and the lowest point.",
                '''
def fit_line(x, y):
    """Height, centre, width and ground of the best line, the width positive.
    Inputs: x, y: arrays
    Output: array of four floats
    """
    guess = [np.max(y) - np.min(y), x[np.argmax(y)], (x[-1] - x[0]) / 10, np.min(y)]
    found, _ = curve_fit(lorentzian, x, y, p0=guess, maxfev=10000)
    found[2] = abs(found[2])
    return found
''',
                [
                    (
                        "x = np.linspace(-5, 5, 101)\ny = lorentzian(x, 2.0, 0.7, 0.6, 0.3)",
                        "fit_line(x, y)",
                        "close",
                    ),
                    (
                        "x = np.linspace(0, 10, 80)\ny = lorentzian(x, 1.0, 4.2, 1.1, 0.0)",
                        "fit_line(x, y)",
                        "close",
                    ),
                ],
            ),
        ],
    ),
    (
        "Reaction_network",
        "Chemical reactions as a matrix.",
        NUMPY,
        [
            (
                "Write a function for the matrix of what each reaction makes and uses up.",
                "Entry (i, j) is how much of substance i reaction j makes, less what it uses up.",
                '''
def stoichiometry(substances, reactions):
    """Matrix of net amounts.
    Inputs: substances: list of names; reactions: list of (used, made), dicts from name to amount
    Output: float array of shape (substances, reactions)
    """
    matrix = np.zeros((len(substances), len(reactions)))
    for column, (used, made) in enumerate(reactions):
        for name, amount in used.items():
            matrix[substances.index(name), column] -= amount
        for name, amount in made.items():
            matrix[substances.index(name), column] += amount
    return matrix
''',
                [
                    ("", 'stoichiometry(["A", "B", "C"], [({"A": 2}, {"B": 1}), ({"B": 1, "A": 1}, {"C": 1})])', "close"),
                    ("", 'stoichiometry(["X"], [({"X": 1}, {"X": 2})])', "close"),
                ],
            ),
            (
                "Write a function for the speeds of the reactions by mass action.",
                "The speed is the constant times the product of the amounts of what is used up, each to the power of its number.",
                '''
def speeds(amounts, reactions, constants):
    """Speed of each reaction.
    Inputs: amounts: dict from name to float; reactions: as before; constants: sequence of floats
    Output: array of floats
    """
    return np.array([
        constant * np.prod([amounts[name] ** number for name, number in used.items()])
        for (used, _), constant in zip(reactions, constants)
    ])
''',
                [
                    (
                        'reactions = [({"A": 2}, {"B": 1}), ({"B": 1, "A": 1}, {"C": 1})]',
                        'speeds({"A": 2.0, "B": 3.0, "C": 0.0}, reactions, [0.5, 0.1])',
                        "close",
                    ),
                    ("", 'speeds({"X": 4.0}, [({"X": 1}, {"X": 2}), ({}, {"X": 1})], [2.0, 7.0])', "close"),
                ],
            ),
            (
                "Write a function for the rate of change of each substance.",
                "The rates are the matrix of net amounts times the speeds.",
                '''
def rates_of_change(amounts, reactions, constants):
    """Rate of change by name.
    Inputs: as in the step before; the substances are the names in amounts, in their order
    Output: dict from name to float
    """
    names = list(amounts)
    rates = stoichiometry(names, reactions) @ speeds(amounts, reactions, constants)
    return {name: float(rate) for name, rate in zip(names, rates)}
''',
                [
                    (
                        'reactions = [({"A": 2}, {"B": 1}), ({"B": 1, "A": 1}, {"C": 1})]',
                        'rates_of_change({"A": 2.0, "B": 3.0, "C": 0.0}, reactions, [0.5, 0.1])',
                        "dict",
                    ),
                    ("", 'rates_of_change({"X": 4.0}, [({"X": 1}, {"X": 2})], [2.0])', "dict"),
                ],
            ),
        ],
    ),
    (
        "Crystal_planes",
        "Distances in a crystal lattice.",
        NUMPY,
        [
            (
                "Write a function for the vectors of the reciprocal lattice.",
                "With the lattice vectors as rows of A, those of the reciprocal lattice are the rows of 2 pi times the inverse of A, transposed.",
                '''
def reciprocal(lattice):
    """Vectors of the reciprocal lattice as rows.
    Input: lattice: array of shape (3, 3), vectors as rows
    Output: array of shape (3, 3)
    """
    return 2 * np.pi * np.linalg.inv(np.asarray(lattice, dtype=float)).T
''',
                [
                    ("", "reciprocal(np.eye(3) * 4.05)", "close"),
                    ("", "reciprocal([[0, 2, 2], [2, 0, 2], [2, 2, 0]])", "close"),
                ],
            ),
            (
                "Write a function for the distance of the planes with given Miller indices.",
                "It is 2 pi over the length of the vector h b1 + k b2 + l b3.",
                '''
def plane_distance(lattice, indices):
    """Distance of neighbouring planes.
    Inputs: lattice: as before; indices: sequence of three ints
    Output: float
    """
    return float(2 * np.pi / np.linalg.norm(np.asarray(indices) @ reciprocal(lattice)))
''',
                [
                    ("", "plane_distance(np.eye(3) * 4.05, [1, 1, 1])", "close"),
                    ("", "plane_distance(np.diag([3.0, 3.0, 5.0]), [1, 0, 2])", "close"),
                ],
            ),
            (
                "Write a function for the angles at which planes reflect X-rays, by their indices.",
                "By Bragg, the sine of the angle is the wavelength over twice the distance; where that is above 1 nothing is reflected.",
                '''
def reflections(lattice, wavelength, planes):
    """Twice the angle in degrees, for each plane that reflects.
    Inputs: lattice: as before; wavelength: float; planes: list of sequences of three ints
    Output: dict from the indices written one after the other, such as "111", to float
    """
    found = {}
    for indices in planes:
        sine = wavelength / (2 * plane_distance(lattice, indices))
        if sine <= 1:
            found["".join(str(index) for index in indices) + " "] = float(2 * np.degrees(np.arcsin(sine)))
    return {name.strip() + "_plane": angle for name, angle in found.items()}
''',
                [
                    ("", "reflections(np.eye(3) * 4.05, 1.5406, [[1, 1, 1], [2, 0, 0], [9, 9, 9]])", "dict"),
                    ("", "reflections(np.diag([3.0, 3.0, 5.0]), 1.0, [[1, 0, 2]])", "dict"),
                ],
            ),
        ],
    ),
    (
        "Epidemic_curve",
        "A model of an infection with three groups of people.",
        NUMPY,
        [
            (
                "Write a function for one day of an epidemic in whole steps.",
                "Of S, I, R as shares of all people, b S I become infected each day and g I recover.",
                '''
def next_day(state, b, g):
    """Shares after a day.
    Inputs: state: sequence of susceptible, infected, recovered; b, g: floats
    Output: array of three floats
    """
    s, i, r = state
    infected, recovered = b * s * i, g * i
    return np.array([s - infected, i + infected - recovered, r + recovered])
''',
                [
                    ("", "next_day([0.99, 0.01, 0.0], 0.5, 0.1)", "close"),
                    ("", "next_day([0.5, 0.3, 0.2], 0.2, 0.3)", "close"),
                ],
            ),
            (
                "Write a function that gives the day with the most infected people within a number of days, and their share.",
                "Day 0 is the start; of equal days the first counts.",
                '''
def peak(state, b, g, days):
    """Day and share of the peak.
    Inputs: as before; days: int
    Output: tuple of int and float
    """
    best = (0, float(state[1]))
    for day in range(1, days + 1):
        state = next_day(state, b, g)
        if state[1] > best[1]:
            best = (day, float(state[1]))
    return best
''',
                [
                    ("", "peak([0.99, 0.01, 0.0], 0.5, 0.1, 100)", "tuple"),
                    ("", "peak([0.3, 0.2, 0.5], 0.2, 0.3, 10)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "Fourier_filter",
        "Take noise out of a signal by its spectrum.",
        NUMPY,
        [
            (
                "Write a function that finds the strongest frequencies of a real signal, strongest first, without the mean.",
                "The spectrum of a real signal with sampling step dt is given by rfft at the frequencies of rfftfreq.",
                '''
def strongest(signal, step, count):
    """The strongest frequencies.
    Inputs: signal: array; step: float in s; count: int
    Output: array of floats in Hz
    """
    spectrum = np.abs(np.fft.rfft(signal))
    spectrum[0] = 0
    order = np.argsort(spectrum)[::-1][:count]
    return np.fft.rfftfreq(len(signal), step)[order]
''',
                [
                    (
                        "t = np.arange(200) * 0.01\nsignal = np.sin(2 * np.pi * 5 * t) + 0.3 * np.sin(2 * np.pi * 12 * t) + 2",
                        "strongest(signal, 0.01, 2)",
                        "close",
                    ),
                    ("", "strongest(np.cos(np.pi * np.arange(16) / 4), 1.0, 1)", "close"),
                ],
            ),
            (
                "Write a function that keeps the frequencies up to a limit and drops all others.",
                "Set the spectrum above the limit to zero and transform back to the same length.",
                '''
def low_pass(signal, step, limit):
    """The signal without its high frequencies.
    Inputs: signal: array; step: float in s; limit: float in Hz
    Output: array like signal
    """
    spectrum = np.fft.rfft(signal)
    spectrum[np.fft.rfftfreq(len(signal), step) > limit] = 0
    return np.fft.irfft(spectrum, n=len(signal))
''',
                [
                    (
                        "t = np.arange(50) * 0.02\nsignal = np.sin(2 * np.pi * 3 * t) + np.sin(2 * np.pi * 20 * t)",
                        "low_pass(signal, 0.02, 10.0)",
                        "close",
                    ),
                    ("", "low_pass(np.arange(7.0), 1.0, 0.2)", "close"),
                ],
            ),
        ],
    ),
    (
        "Quantum_oscillator",
        "Ladder operators of the harmonic oscillator.",
        NUMPY,
        [
            (
                "Write a function for the matrix that lowers the number of quanta, cut to a finite size.",
                "It has sqrt(1), sqrt(2), ... above the diagonal.",
                '''
def lowering(size):
    """Lowering operator.
    Input: size: int
    Output: array of shape (size, size)
    """
    return np.diag(np.sqrt(np.arange(1, size)), 1)
''',
                [
                    ("", "lowering(4)", "close"),
                    ("", "lowering(1)", "close"),
                ],
            ),
            (
                "Write a function for place and momentum operators in natural units.",
                "x = (a + a^T) / sqrt(2) and p = (a - a^T) / (i sqrt(2)).",
                '''
def place_and_momentum(size):
    """Both operators.
    Input: size: int
    Output: tuple of two complex arrays of shape (size, size)
    """
    a = lowering(size)
    return (a + a.T).astype(complex) / np.sqrt(2), (a - a.T) / (1j * np.sqrt(2))
''',
                [
                    ("", "place_and_momentum(3)", "tuple"),
                    ("", "place_and_momentum(5)[1]", "close"),
                ],
            ),
            (
                "Write a function that gives the commutator of both on its diagonal, and whether it is right but for the last entry.",
                "Without the cut it would be i everywhere; the cut breaks the last one.",
                '''
def commutator_check(size):
    """Diagonal of [x, p], and whether all but its last entry are i.
    Input: size: int, at least 2
    Output: tuple of bool and complex array
    """
    x, p = place_and_momentum(size)
    diagonal = np.diag(x @ p - p @ x)
    return bool(np.allclose(diagonal[:-1], 1j)), diagonal
''',
                [
                    ("", "commutator_check(4)", "tuple"),
                    ("", "commutator_check(9)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "River_network",
        "Water that gathers from springs to the sea.",
        NUMPY,
        [
            (
                "Write a class for a river network, which knows where each place drains to.",
                "Each place drains to one other; the sea drains nowhere.",
                '''
class Network:
    """Places and where they drain to."""

    def __init__(self, drains):
        """Keeps the places.
        Input: drains: dict from place (str) to the next place (str), or None for the sea
        """
        self.drains = dict(drains)

    def path(self, place):
        """The places that water passes, the first one included."""
        passed = []
        while place is not None:
            passed.append(place)
            place = self.drains[place]
        return passed
''',
                [
                    (
                        'network = Network({"spring": "brook", "brook": "river", "river": "sea", "sea": None})',
                        'len(network.path("spring"))',
                        "equal",
                    ),
                    ('network = Network({"a": "b", "b": None})', '" ".join(network.path("a"))', "equal"),
                ],
            ),
            (
                "Write a function for the flow at each place when rain falls at some.",
                "Rain at a place adds to the flow of every place on its path.",
                '''
def flows(network, rain):
    """Flow at every place.
    Inputs: network: Network; rain: dict from place to float
    Output: dict from place to float
    """
    total = {place: 0.0 for place in network.drains}
    for place, amount in rain.items():
        for passed in network.path(place):
            total[passed] += amount
    return total
''',
                [
                    (
                        'network = Network({"a": "c", "b": "c", "c": "d", "d": None})',
                        'flows(network, {"a": 1.5, "b": 2.0})',
                        "dict",
                    ),
                    ('network = Network({"a": "b", "b": None})', 'flows(network, {})', "dict"),
                ],
            ),
        ],
    ),
    (
        "Numerical_integrals",
        "Rules of quadrature and how well they do.",
        "import numpy as np\nfrom scipy.integrate import quad\n",
        [
            (
                "Write a function for the rule of trapezoids on equal intervals.",
                "The ends count half.",
                '''
def trapezoids(function, start, end, intervals):
    """Integral by trapezoids.
    Inputs: function of an array; start, end: floats; intervals: int
    Output: float
    """
    x = np.linspace(start, end, intervals + 1)
    y = function(x)
    return float((end - start) / intervals * (y.sum() - (y[0] + y[-1]) / 2))
''',
                [
                    ("", "trapezoids(np.sin, 0.0, np.pi, 10)", "close"),
                    ("", "trapezoids(lambda x: x**3, 1.0, 2.0, 4)", "close"),
                ],
            ),
            (
                "Write a function for Simpson's rule, made of two results of the rule of trapezoids.",
                "Simpson's rule is (4 T(2n) - T(n)) / 3.",
                '''
def simpson_rule(function, start, end, intervals):
    """Integral by Simpson's rule on twice the number of intervals.
    Inputs: as in the step before
    Output: float
    """
    fine = trapezoids(function, start, end, 2 * intervals)
    return (4 * fine - trapezoids(function, start, end, intervals)) / 3
''',
                [
                    ("", "simpson_rule(np.sin, 0.0, np.pi, 4)", "close"),
                    ("", "simpson_rule(np.exp, -1.0, 1.0, 3)", "close"),
                ],
            ),
            (
                "Write a function that gives the errors of both rules against an accurate value.",
                "Use quad for the accurate value.",
                '''
def errors(function, start, end, intervals):
    """Errors by the name of the rule.
    Inputs: as before
    Output: dict with "trapezoids" and "simpson"
    """
    exact, _ = quad(function, start, end, epsabs=1e-13)
    return {
        "trapezoids": trapezoids(function, start, end, intervals) - exact,
        "simpson": simpson_rule(function, start, end, intervals) - exact,
    }
''',
                [
                    ("", "errors(np.sin, 0.0, np.pi, 4)", "dict"),
                    ("", "errors(np.exp, -1.0, 1.0, 3)", "dict"),
                ],
            ),
            (
                "Write a function that estimates the order of a rule from the errors at two numbers of intervals.",
                "An error that falls as n^-p gives p = log2(e(n) / e(2n)).",
                '''
def order(function, start, end, intervals, rule):
    """Estimated order.
    Inputs: as before; rule: "trapezoids" or "simpson"
    Output: float
    """
    coarse = errors(function, start, end, intervals)[rule]
    fine = errors(function, start, end, 2 * intervals)[rule]
    return float(np.log2(abs(coarse / fine)))
''',
                [
                    ("", 'order(np.sin, 0.0, np.pi, 8, "trapezoids")', "close"),
                    ("", 'round(order(np.exp, 0.0, 1.0, 4, "simpson"), 3)', "close"),
                ],
            ),
        ],
    ),
    (
        "Graph_laplacian",
        "Clusters of a network by the eigenvectors of its Laplacian.",
        "import numpy as np\nimport scipy.sparse as sp\n",
        [
            (
                "Write a function for the adjacency matrix of an undirected network as a list of coordinates (COO).",
                "Each link gives two entries.",
                '''
def adjacency(n, links):
    """Adjacency matrix.
    Inputs: n: int; links: list of pairs of ints
    Output: sparse matrix in COO form of shape (n, n)
    """
    rows = [a for a, b in links] + [b for a, b in links]
    columns = [b for a, b in links] + [a for a, b in links]
    return sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
''',
                [
                    ("", "adjacency(4, [(0, 1), (1, 2), (2, 3)])", "sparse"),
                    ("", "adjacency(3, [(0, 2)])", "sparse"),
                ],
            ),
            (
                "Write a function for the Laplacian of the network as a dense matrix.",
                "It is the diagonal matrix of the degrees less the adjacency matrix.",
                '''
def laplacian(n, links):
    """Laplacian of the network.
    Inputs: as in the step before
    Output: array of shape (n, n)
    """
    matrix = adjacency(n, links).toarray()
    return np.diag(matrix.sum(axis=1)) - matrix
''',
                [
                    ("", "laplacian(4, [(0, 1), (1, 2), (2, 3)])", "close"),
                    ("", "laplacian(3, [(0, 2)])", "close"),
                ],
            ),
            (
                "Write a function that counts the parts of the network that hang together and gives the smallest eigenvalue above zero.",
                "The Laplacian has as many zero eigenvalues as the network has parts.",
                '''
def parts_and_gap(n, links):
    """Number of parts and the gap.
    Inputs: as before
    Output: tuple of int and float; the gap is 0.0 when there is no link
    """
    values = np.linalg.eigvalsh(laplacian(n, links))
    above = values[values > 1e-9]
    return int(n - len(above)), float(above[0]) if len(above) else 0.0
''',
                [
                    ("", "parts_and_gap(4, [(0, 1), (1, 2), (2, 3)])", "tuple"),
                    ("", "parts_and_gap(5, [(0, 2), (3, 4)])", "tuple"),
                ],
            ),
        ],
    ),
]
