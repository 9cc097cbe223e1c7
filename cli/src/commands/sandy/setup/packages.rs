//! What the environment is made of.

/// Versions of Python 3 that all packages have builds for.
pub(super) const MINOR_MIN: u32 = 10;
/// The last of them.
pub(super) const MINOR_MAX: u32 = 12;

/// All packages, with those that they need. SciCode asks for numpy before 2 and scipy before 1.14, which took out
/// `scipy.integrate.simps`.
pub(super) const PACKAGES: [&str; 15] = [
    "numpy==1.26.4",
    "scipy==1.13.1",
    "sympy==1.13.3",
    "mpmath==1.3.0",
    "h5py==3.11.0",
    "matplotlib==3.9.2",
    "contourpy==1.3.0",
    "cycler==0.12.1",
    "fonttools==4.54.1",
    "kiwisolver==1.4.7",
    "packaging==24.1",
    "pillow==10.4.0",
    "pyparsing==3.1.4",
    "python-dateutil==2.9.0.post0",
    "six==1.16.0",
];

/// Uses each of them. No quotation mark that a shell would read.
pub(super) const IMPORTS: &str = "import numpy, scipy.integrate, scipy.linalg, sympy, h5py\n\
    import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot\n\
    assert abs(scipy.linalg.det(numpy.eye(3)) - 1) < 1e-9\n\
    assert scipy.integrate.simps([1, 1, 1], dx=1) == 2";
