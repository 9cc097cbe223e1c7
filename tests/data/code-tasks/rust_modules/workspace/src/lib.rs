#[cfg(any(test, feature = "std"))]
mod calc;

pub use calc::add;

/// Data that looks like a source with tests.
pub const SAMPLE: &str = include_str!("sample.rs");

#[cfg(test)]
mod sample_tests {
    #[test]
    fn sample_is_whole() {
        assert_eq!(super::SAMPLE.lines().count(), 5);
    }
}
