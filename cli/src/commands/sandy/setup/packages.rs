//! Python versions and packages of the environment.

/// Lowest minor version of Python 3 for which all packages have builds.
pub(super) const MINOR_MIN: u32 = 10;
/// Highest minor version of Python 3 for which all packages have builds.
pub(super) const MINOR_MAX: u32 = 12;

/// List of packages that sandboxes are tested with.
const REQUIREMENTS: &str = include_str!("../../../../../shared/sandbox/python-requirements.txt");

/// Returns all packages with their dependencies, as pip reads them. SciCode needs numpy before 2 and scipy before 1.14,
/// which removed `scipy.integrate.simps`.
pub(super) fn packages() -> Vec<&'static str> {
    let lines = REQUIREMENTS.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Imports and uses each package. Contains no quotation mark that a shell would interpret.
pub(super) const IMPORTS: &str = "import pytest, numpy, scipy.integrate, scipy.linalg, sympy, h5py\n\
    import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot\n\
    assert abs(scipy.linalg.det(numpy.eye(3)) - 1) < 1e-9\n\
    assert scipy.integrate.simps([1, 1, 1], dx=1) == 2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned() {
        let packages = packages();
        for package in &packages {
            let (name, version) = package.split_once("==").unwrap();
            assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{package}");
        }
        for needed in ["numpy==1.", "scipy==1.13.", "sympy==", "h5py==", "matplotlib==", "pytest=="] {
            assert!(packages.iter().any(|package| package.starts_with(needed)), "{needed}");
        }
    }
}
