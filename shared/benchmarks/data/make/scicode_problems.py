"""Demo problems of SciCode, first half: name, what it is about, import lines, steps.

A step: what is to be done, the science behind it, a right program, tests (preparation, expression, comparison).
"""

NUMPY = "import numpy as np\n"

PROBLEMS = [
    (
        "Cooling_cup",
        "Follow the temperature of a cup of tea in a room.",
        NUMPY,
        [
            (
                "Write a function that gives the rate at which a body's temperature changes by Newton's law of cooling.",
                "The rate is -k (T - T_room), where k is the cooling constant in 1/min.",
                '''
def cooling_rate(temperature, room, k):
    """Rate of change of a body's temperature.
    Inputs: temperature, room: floats or arrays in degrees; k: float in 1/min
    Output: rate in degrees per minute
    """
    return -k * (np.asarray(temperature) - room)
''',
                [
                    ("", "cooling_rate(80.0, 20.0, 0.05)", "close"),
                    ("temperatures = np.linspace(10, 90, 5)", "cooling_rate(temperatures, 21.5, 0.1)", "close"),
                ],
            ),
            (
                "Write a function that integrates the cooling law with the explicit Euler method and gives the temperatures at all times.",
                "Euler's method advances by T_next = T + h f(T) with step h.",
                '''
def euler_cooling(start, room, k, step, steps):
    """Temperatures at the times 0, step, 2 step, ...
    Inputs: start, room: floats in degrees; k: float in 1/min; step: float in min; steps: int
    Output: array of steps + 1 temperatures
    """
    temperatures = np.empty(steps + 1)
    temperatures[0] = start
    for at in range(steps):
        temperatures[at + 1] = temperatures[at] + step * cooling_rate(temperatures[at], room, k)
    return temperatures
''',
                [
                    ("", "euler_cooling(90.0, 20.0, 0.05, 1.0, 10)", "close"),
                    ("", "euler_cooling(5.0, 20.0, 0.2, 0.5, 6)", "close"),
                ],
            ),
            (
                "Write a function that compares Euler's result with the exact one: it gives the last temperature of each and their difference.",
                "The exact solution is T_room + (T_0 - T_room) exp(-k t).",
                '''
def compare_with_exact(start, room, k, step, steps):
    """Last temperatures by Euler and exactly, and the first minus the second.
    Inputs: as in the step before
    Output: tuple of three floats
    """
    last = euler_cooling(start, room, k, step, steps)[-1]
    exact = room + (start - room) * np.exp(-k * step * steps)
    return float(last), float(exact), float(last - exact)
''',
                [
                    ("", "compare_with_exact(90.0, 20.0, 0.05, 1.0, 10)", "tuple"),
                    ("", "compare_with_exact(90.0, 20.0, 0.05, 0.1, 100)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "Random_walk_statistics",
        "Describe walks on a line by their step lists.",
        NUMPY,
        [
            (
                "Write a function that gives the positions of a walk that starts at 0, from its steps of +1 and -1.",
                "The position after n steps is the sum of the first n steps.",
                '''
def positions(steps):
    """Positions after each step, the start included.
    Input: steps: sequence of +1 and -1
    Output: array with one entry more than steps
    """
    return np.concatenate([[0], np.cumsum(np.asarray(steps, dtype=int))])
''',
                [
                    ("", "positions([1, 1, -1, 1, -1, -1, -1])", "close"),
                    ("", "positions([])", "close"),
                ],
            ),
            (
                "Write a function that counts how often the walk is at each place that it visits.",
                "The occupation of a place is the number of times at which the walker is there, the start included.",
                '''
def occupation(steps):
    """How often each place is visited.
    Input: steps: sequence of +1 and -1
    Output: dict from place (int) to count (int)
    """
    places, counts = np.unique(positions(steps), return_counts=True)
    return {int(place): int(count) for place, count in zip(places, counts)}
''',
                [
                    ("", "occupation([1, 1, -1, 1, -1, -1, -1])", "dict"),
                    ("", "occupation([-1, -1, 1])", "dict"),
                ],
            ),
        ],
    ),
    (
        "Two_level_atom",
        "Rabi oscillations of a driven atom with two levels.",
        "import numpy as np\nfrom scipy.linalg import expm\n",
        [
            (
                "Write a function for the Hamiltonian of a driven two-level atom in the rotating frame.",
                "With detuning d and Rabi frequency w (both angular frequencies, hbar = 1) it is 1/2 [[-d, w], [w, d]].",
                '''
def hamiltonian(detuning, rabi):
    """Hamiltonian in the rotating frame.
    Inputs: detuning, rabi: floats
    Output: complex array of shape (2, 2)
    """
    return 0.5 * np.array([[-detuning, rabi], [rabi, detuning]], dtype=complex)
''',
                [
                    ("", "hamiltonian(0.3, 1.2)", "close"),
                    ("", "hamiltonian(0.0, 2.0)", "close"),
                ],
            ),
            (
                "Write a function that evolves a state for a time under that Hamiltonian.",
                "The propagator is U = exp(-i H t).",
                '''
def evolve(state, detuning, rabi, time):
    """State after the time.
    Inputs: state: array of 2 complex amplitudes; detuning, rabi, time: floats
    Output: array of 2 complex amplitudes
    """
    return expm(-1j * hamiltonian(detuning, rabi) * time) @ np.asarray(state, dtype=complex)
''',
                [
                    ("", "evolve([1, 0], 0.0, 1.0, np.pi)", "close"),
                    ("", "evolve([1 / np.sqrt(2), 1j / np.sqrt(2)], 0.7, 1.1, 2.5)", "close"),
                ],
            ),
            (
                "Write a function that gives the probability of the upper level at several times when the atom starts in the lower one.",
                "The lower level is the first component; a probability is the squared modulus of an amplitude.",
                '''
def excited_probability(detuning, rabi, times):
    """Probability of the second component at each time.
    Inputs: detuning, rabi: floats; times: sequence of floats
    Output: array of floats
    """
    return np.array([abs(evolve([1, 0], detuning, rabi, time)[1]) ** 2 for time in times])
''',
                [
                    ("", "excited_probability(0.0, 1.0, [0.0, np.pi / 2, np.pi])", "close"),
                    ("times = np.linspace(0, 5, 7)", "excited_probability(1.0, 2.0, times)", "close"),
                ],
            ),
        ],
    ),
    (
        "Chain_of_springs",
        "Normal modes of equal masses on a line with equal springs and fixed ends.",
        "import numpy as np\nimport scipy.sparse\nfrom scipy.sparse.linalg import eigsh\n",
        [
            (
                "Write a function that builds the dynamical matrix of the chain as a sparse matrix by rows (CSR).",
                "For n masses m between fixed walls it has 2k/m on the diagonal and -k/m beside it.",
                '''
def dynamical_matrix(n, k, m):
    """Dynamical matrix of a chain between walls.
    Inputs: n: int, number of masses; k, m: floats
    Output: sparse matrix in CSR form of shape (n, n)
    """
    off = np.full(n - 1, -k / m)
    return scipy.sparse.diags([off, np.full(n, 2 * k / m), off], [-1, 0, 1], format="csr")
''',
                [
                    ("", "dynamical_matrix(4, 2.0, 0.5)", "sparse"),
                    ("", "dynamical_matrix(7, 1.0, 1.0)", "sparse"),
                ],
            ),
            (
                "Write a function that gives the lowest angular frequencies of the chain in ascending order.",
                "The frequencies are the square roots of the eigenvalues of the dynamical matrix.",
                '''
def lowest_frequencies(n, k, m, count):
    """The lowest angular frequencies.
    Inputs: n, count: ints with count < n; k, m: floats
    Output: array of count floats in ascending order
    """
    values = eigsh(dynamical_matrix(n, k, m).tocsc(), k=count, sigma=0, return_eigenvectors=False)
    return np.sqrt(np.sort(values))
''',
                [
                    ("", "lowest_frequencies(10, 1.0, 1.0, 3)", "close"),
                    ("", "lowest_frequencies(20, 3.0, 0.7, 5)", "close"),
                ],
            ),
        ],
    ),
    (
        "Polynomial_potential",
        "Equilibria of a particle in a polynomial potential, by symbols.",
        "import numpy as np\nimport sympy\n",
        [
            (
                "Write a function that gives the force in a potential that is given by its coefficients.",
                "The force is minus the derivative of the potential V(x) = sum of c[i] x^i.",
                '''
def force(coefficients):
    """Force as an expression in the symbol x.
    Input: coefficients: list of ints, constant term first
    Output: expanded sympy expression
    """
    x = sympy.Symbol("x")
    potential = sum(c * x**power for power, c in enumerate(coefficients))
    return sympy.expand(-sympy.diff(potential, x))
''',
                [
                    ("", "str(force([0, 0, -2, 0, 1]))", "equal"),
                    ("", "str(force([5, 1, 3]))", "equal"),
                ],
            ),
            (
                "Write a function that finds the real equilibria and says of each whether it is stable.",
                "An equilibrium is a zero of the force; it is stable where the force falls through zero.",
                '''
def equilibria(coefficients):
    """Stability of each real equilibrium.
    Input: coefficients: list of ints, constant term first
    Output: dict from place (float) to 1.0 when it is stable, else 0.0
    """
    x = sympy.Symbol("x")
    expression = force(coefficients)
    slope = sympy.diff(expression, x)
    places = sympy.Poly(expression, x).nroots()
    real = [place for place in places if abs(sympy.im(place)) < 1e-12]
    return {float(sympy.re(place)): 1.0 if slope.subs(x, sympy.re(place)) < 0 else 0.0 for place in real}
''',
                [
                    ("", "equilibria([0, 0, -2, 0, 1])", "dict"),
                    ("", "equilibria([0, 3, 2])", "dict"),
                ],
            ),
        ],
    ),
    (
        "Gas_in_a_box",
        "A small class for an ideal gas, and processes on it.",
        NUMPY,
        [
            (
                "Write a class for an ideal gas in a box that knows its pressure.",
                "The ideal gas law is p V = n R T with R = 8.314462618 J/(mol K).",
                '''
class Gas:
    """An ideal gas in a box."""

    def __init__(self, moles, volume, temperature):
        """Keeps the state.
        Inputs: moles: float; volume: float in m^3; temperature: float in K
        """
        self.moles = moles
        self.volume = volume
        self.temperature = temperature

    def pressure(self):
        """Pressure in Pa."""
        return self.moles * 8.314462618 * self.temperature / self.volume
''',
                [
                    ("gas = Gas(2.0, 0.05, 300.0)", "gas.pressure()", "close"),
                    ("gas = Gas(0.5, 0.01, 250.0)", "(gas.moles, gas.volume, gas.pressure())", "tuple"),
                ],
            ),
            (
                "Write a function that gives the gas after a reversible adiabatic change of its volume.",
                "In such a change T V^(gamma - 1) stays the same.",
                '''
def adiabatic(gas, volume, gamma):
    """The gas at another volume, without heat exchanged.
    Inputs: gas: Gas; volume: float in m^3; gamma: float, ratio of heat capacities
    Output: a new Gas
    """
    temperature = gas.temperature * (gas.volume / volume) ** (gamma - 1)
    return Gas(gas.moles, volume, temperature)
''',
                [
                    ("gas = adiabatic(Gas(1.0, 0.02, 300.0), 0.04, 5 / 3)", "(gas.temperature, gas.pressure())", "tuple"),
                    ("gas = adiabatic(Gas(1.0, 0.02, 300.0), 0.005, 1.4)", "gas.temperature", "close"),
                ],
            ),
            (
                "Write a function for the work that the gas does in that change.",
                "Without heat, the work is what the inner energy loses: n R (T1 - T2) / (gamma - 1).",
                '''
def adiabatic_work(gas, volume, gamma):
    """Work done by the gas in J.
    Inputs: as in the step before
    Output: float
    """
    after = adiabatic(gas, volume, gamma)
    return gas.moles * 8.314462618 * (gas.temperature - after.temperature) / (gamma - 1)
''',
                [
                    ("", "adiabatic_work(Gas(1.0, 0.02, 300.0), 0.04, 5 / 3)", "close"),
                    ("", "adiabatic_work(Gas(3.0, 0.1, 280.0), 0.05, 1.4)", "close"),
                ],
            ),
        ],
    ),
    (
        "Sequence_profile",
        "Score short DNA words by a table of how often each letter stands at each place.",
        NUMPY,
        [
            (
                "Write a function that gives the reverse complement of a DNA word.",
                "A pairs with T and C with G; the other strand is read backwards.",
                '''
def reverse_complement(word):
    """The other strand.
    Input: word: str of the letters A, C, G, T
    Output: str
    """
    return word.translate(str.maketrans("ACGT", "TGCA"))[::-1]
''',
                [
                    ("", 'reverse_complement("ACGGTT")', "equal"),
                    ("", 'reverse_complement("GATTACA")', "equal"),
                ],
            ),
            (
                "Write a function that makes the table of letter frequencies from words of one length, with one added to each count.",
                "The added count keeps a letter that was not seen from being impossible.",
                '''
def profile(words):
    """Frequencies of the letters at each place.
    Input: words: list of str of one length
    Output: dict from letter to array of floats, one per place
    """
    length = len(words[0])
    counts = {letter: np.ones(length) for letter in "ACGT"}
    for word in words:
        for place, letter in enumerate(word):
            counts[letter][place] += 1
    return {letter: count / (len(words) + 4) for letter, count in counts.items()}
''',
                [
                    ("", 'profile(["ACGT", "ACGA", "TCGA"])', "dict"),
                    ("", 'profile(["GG"])', "dict"),
                ],
            ),
            (
                "Write a function that finds where in a sequence the best word stands, on either strand.",
                "The score of a word is the sum of the logarithms of its letters' frequencies over 1/4.",
                '''
def best_place(sequence, words):
    """Place and score of the best word of the profile's length.
    Inputs: sequence: str; words: list of str that the profile is made of
    Output: tuple of place (int, on the given strand) and score (float); the first of equal ones
    """
    table = profile(words)
    length = len(words[0])

    def score(word):
        return sum(np.log(table[letter][place] / 0.25) for place, letter in enumerate(word))

    best = (0, -np.inf)
    for at in range(len(sequence) - length + 1):
        word = sequence[at : at + length]
        found = max(score(word), score(reverse_complement(word)))
        if found > best[1]:
            best = (at, float(found))
    return best
''',
                [
                    ("", 'best_place("TTTTCGATTT", ["ACGA", "TCGA", "ACGT"])', "tuple"),
                    ("", 'best_place("AAACCCGGG", ["GGG", "GGT"])', "tuple"),
                ],
            ),
        ],
    ),
    (
        "Predator_and_prey",
        "The equations of Lotka and Volterra.",
        "import numpy as np\nfrom scipy.integrate import solve_ivp\n",
        [
            (
                "Write a function for the rates of change of prey and predators.",
                "With prey x and predators y the rates are a x - b x y and d x y - c y.",
                '''
def rates(time, state, a, b, c, d):
    """Rates of change.
    Inputs: time: float (not used); state: sequence of prey and predators; a, b, c, d: floats
    Output: array of two floats
    """
    x, y = state
    return np.array([a * x - b * x * y, d * x * y - c * y])
''',
                [
                    ("", "rates(0.0, [10.0, 5.0], 1.0, 0.1, 1.5, 0.075)", "close"),
                    ("", "rates(3.0, [20.0, 10.0], 1.0, 0.1, 1.5, 0.075)", "close"),
                ],
            ),
            (
                "Write a function for the quantity that stays the same along a solution.",
                "It is V = d x - c ln x + b y - a ln y.",
                '''
def invariant(state, a, b, c, d):
    """The conserved quantity.
    Inputs: state: sequence of prey and predators, both above 0; a, b, c, d: floats
    Output: float
    """
    x, y = state
    return d * x - c * np.log(x) + b * y - a * np.log(y)
''',
                [
                    ("", "invariant([10.0, 5.0], 1.0, 0.1, 1.5, 0.075)", "close"),
                    ("", "invariant([1.0, 1.0], 2.0, 0.3, 0.5, 0.1)", "close"),
                ],
            ),
            (
                "Write a function that integrates the equations with tight tolerances and gives the state at an end time.",
                "Use solve_ivp with the method DOP853 and relative and absolute tolerances of 1e-10.",
                '''
def state_at(time, start, a, b, c, d):
    """State at the end time.
    Inputs: time: float; start: sequence of prey and predators at time 0; a, b, c, d: floats
    Output: array of two floats
    """
    solution = solve_ivp(rates, (0, time), start, method="DOP853", args=(a, b, c, d), rtol=1e-10, atol=1e-10)
    return solution.y[:, -1]
''',
                [
                    ("", "state_at(4.0, [10.0, 5.0], 1.0, 0.1, 1.5, 0.075)", "close"),
                    (
                        "start = [8.0, 3.0]\nend = state_at(2.0, start, 1.0, 0.1, 1.5, 0.075)",
                        "invariant(end, 1.0, 0.1, 1.5, 0.075) - invariant(start, 1.0, 0.1, 1.5, 0.075)",
                        "close",
                    ),
                ],
            ),
        ],
    ),
    (
        "Circular_orbits",
        "Speeds and periods of satellites.",
        NUMPY,
        [
            (
                "Write a function for the speed on a circular orbit.",
                "The speed is sqrt(mu / r), where mu is the mass of the planet times the constant of gravity.",
                '''
def orbital_speed(mu, radius):
    """Speed on a circular orbit.
    Inputs: mu: float in m^3/s^2; radius: float or array in m
    Output: speed in m/s
    """
    return np.sqrt(mu / np.asarray(radius))
''',
                [
                    ("", "orbital_speed(3.986004418e14, 6.771e6)", "close"),
                    ("", "orbital_speed(4.9e12, [1.8e6, 2.0e6])", "close"),
                ],
            ),
            (
                "Write a function for the two changes of speed of a Hohmann transfer between circular orbits.",
                "The transfer ellipse has the half axis a = (r1 + r2) / 2; on it the speed is sqrt(mu (2 / r - 1 / a)).",
                '''
def hohmann(mu, inner, outer):
    """Changes of speed at the start and at the end of the transfer, both positive.
    Inputs: mu: float in m^3/s^2; inner, outer: floats in m with inner < outer
    Output: tuple of two floats in m/s
    """
    half = (inner + outer) / 2
    leave = np.sqrt(mu * (2 / inner - 1 / half)) - orbital_speed(mu, inner)
    arrive = orbital_speed(mu, outer) - np.sqrt(mu * (2 / outer - 1 / half))
    return float(leave), float(arrive)
''',
                [
                    ("", "hohmann(3.986004418e14, 6.678e6, 4.2164e7)", "tuple"),
                    ("", "hohmann(1.0, 1.0, 2.0)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "Ising_ring",
        "Spins on a ring that favour equal neighbours.",
        "import itertools\nimport numpy as np\n",
        [
            (
                "Write a function for the energy of spins on a ring.",
                "The energy is -J times the sum over neighbours of the products of their spins; the last one is a neighbour of the first.",
                '''
def energy(spins, coupling):
    """Energy of a ring of spins.
    Inputs: spins: sequence of +1 and -1; coupling: float
    Output: float
    """
    spins = np.asarray(spins)
    return float(-coupling * np.sum(spins * np.roll(spins, 1)))
''',
                [
                    ("", "energy([1, 1, -1, 1], 1.0)", "close"),
                    ("", "energy([1, -1, 1, -1, 1], 0.5)", "close"),
                ],
            ),
            (
                "Write a function for the partition sum of a small ring by adding up all its states.",
                "Z is the sum of exp(-E / T) over all 2^n states.",
                '''
def partition_sum(n, coupling, temperature):
    """Partition sum over all states.
    Inputs: n: int, number of spins; coupling, temperature: floats
    Output: float
    """
    states = itertools.product([1, -1], repeat=n)
    return float(sum(np.exp(-energy(state, coupling) / temperature) for state in states))
''',
                [
                    ("", "partition_sum(4, 1.0, 2.0)", "close"),
                    ("", "partition_sum(6, -0.5, 1.0)", "close"),
                ],
            ),
            (
                "Write a function that gives the partition sum from the transfer matrix, and its relative difference from the sum over states.",
                "Z is the sum of the n-th powers of the eigenvalues 2 cosh(J / T) and 2 sinh(J / T).",
                '''
def transfer_matrix_sum(n, coupling, temperature):
    """Partition sum by the transfer matrix, and how far it is from the sum over states.
    Inputs: as in the step before
    Output: tuple of two floats
    """
    ratio = coupling / temperature
    total = (2 * np.cosh(ratio)) ** n + (2 * np.sinh(ratio)) ** n
    direct = partition_sum(n, coupling, temperature)
    return float(total), float(total / direct - 1)
''',
                [
                    ("", "transfer_matrix_sum(4, 1.0, 2.0)", "tuple"),
                    ("", "transfer_matrix_sum(5, 0.7, 1.3)", "tuple"),
                ],
            ),
        ],
    ),
    (
        "Thin_lenses",
        "Rays through lenses by two-by-two matrices.",
        NUMPY,
        [
            (
                "Write a function for the matrix of a distance and a function result for that of a lens in one: kind decides.",
                "A ray is (height, angle). A distance d is [[1, d], [0, 1]], a lens of focal length f is [[1, 0], [-1/f, 1]].",
                '''
def element(kind, value):
    """Matrix of an optical element.
    Inputs: kind: "distance" or "lens"; value: float, distance or focal length
    Output: array of shape (2, 2)
    """
    if kind == "distance":
        return np.array([[1.0, value], [0.0, 1.0]])
    return np.array([[1.0, 0.0], [-1.0 / value, 1.0]])
''',
                [
                    ("", 'element("distance", 0.3)', "close"),
                    ("", 'element("lens", -0.5)', "close"),
                ],
            ),
            (
                "Write a function that gives the rays after each element of a system.",
                "Matrices act from the left in the order in which light passes the elements.",
                '''
def trace(ray, elements):
    """The ray after each element.
    Inputs: ray: sequence of height and angle; elements: list of (kind, value)
    Output: list of arrays of two floats
    """
    rays = []
    ray = np.asarray(ray, dtype=float)
    for kind, value in elements:
        ray = element(kind, value) @ ray
        rays.append(ray)
    return rays
''',
                [
                    ("", 'trace([1.0, 0.0], [("lens", 2.0), ("distance", 2.0)])', "tuple"),
                    ("", 'trace([0.0, 0.1], [("distance", 1.0), ("lens", 0.5), ("distance", 1.0)])', "tuple"),
                ],
            ),
        ],
    ),
]
