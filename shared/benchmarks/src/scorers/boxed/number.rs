//! Numbers: exact as long as possible, otherwise complex in double precision.
//!
//! The official comparison allows a difference of 1e-10, which double precision achieves for typical answers below
//! 1000. Where exactness matters (large powers, roots of squares, remainders), the value stays a fraction of big
//! integers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::Ratio;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::python;

/// Fraction of big integers.
pub(super) type Rational = Ratio<BigInt>;

/// Maximum size in bits of an exact power.
const POWER_BITS_MAX: u64 = 1 << 17;

/// Maximum argument of an exact factorial.
const FACTORIAL_MAX: u32 = 2000;

/// Maximum lower index of a binomial coefficient.
const BINOMIAL_MAX: u32 = 5000;

/// Number. Infinite and undefined values are `Approximate` with non-finite parts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Exact(Rational),
    Approximate { re: f64, im: f64 },
}

impl From<BigInt> for Number {
    fn from(value: BigInt) -> Self {
        Self::Exact(Rational::from_integer(value))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::from(BigInt::from(value))
    }
}

impl From<f64> for Number {
    fn from(re: f64) -> Self {
        Self::Approximate { re, im: 0.0 }
    }
}

/// Converts a fraction to the nearest double without overflow of its parts.
pub(super) fn rational_to_f64(value: &Rational) -> f64 {
    let (numerator, denominator) = (value.numer(), value.denom());
    // Keep 80 significant bits of the quotient, then scale.
    let shift = 80 - (numerator.bits() as i64 - denominator.bits() as i64);
    let quotient = if shift >= 0 {
        (numerator << shift.unsigned_abs()) / denominator
    } else {
        numerator / (denominator << shift.unsigned_abs())
    };
    let scaled = quotient.to_f64().unwrap_or(f64::NAN);
    // Two steps keep the scale itself within range for subnormal and large results.
    let half = i32::try_from(-shift / 2).unwrap_or(if shift > 0 { -4000 } else { 4000 });
    let rest = i32::try_from(-shift - i64::from(half)).unwrap_or(half);
    scaled * 2f64.powi(half) * 2f64.powi(rest)
}

impl Number {
    pub(super) const UNDEFINED: Self = Self::Approximate { re: f64::NAN, im: 0.0 };
    pub(super) const INFINITE: Self = Self::Approximate { re: f64::INFINITY, im: 0.0 };
    pub(super) const IMAGINARY_UNIT: Self = Self::Approximate { re: 0.0, im: 1.0 };

    pub(super) fn parts(&self) -> (f64, f64) {
        match self {
            Self::Exact(value) => (rational_to_f64(value), 0.0),
            Self::Approximate { re, im } => (*re, *im),
        }
    }

    /// Returns the value if it is an exact integer.
    pub(super) fn integer(&self) -> Option<&BigInt> {
        match self {
            Self::Exact(value) if value.is_integer() => Some(value.numer()),
            _ => None,
        }
    }

    /// Returns the real part if the imaginary part is zero.
    pub(super) fn real(&self) -> Option<f64> {
        let (re, im) = self.parts();
        (im == 0.0).then_some(re)
    }

    pub(super) fn is_zero(&self) -> bool {
        matches!(self, Self::Exact(value) if value.is_zero()) || *self == Self::from(0.0)
    }

    pub(super) fn is_finite(&self) -> bool {
        let (re, im) = self.parts();
        matches!(self, Self::Exact(_)) || (re.is_finite() && im.is_finite())
    }

    pub(super) fn negated(&self) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(-value),
            Self::Approximate { re, im } => Self::Approximate { re: -re, im: -im },
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return Self::Exact(a + b);
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        Self::Approximate { re: a + c, im: b + d }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return Self::Exact(a * b);
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        if b == 0.0 && d == 0.0 {
            return Self::from(a * c);
        }
        Self::Approximate { re: a * c - b * d, im: a * d + b * c }
    }

    pub(super) fn divided_by(&self, other: &Self) -> Self {
        if other.is_zero() {
            return if self.is_zero() { Self::UNDEFINED } else { Self::INFINITE };
        }
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return Self::Exact(a / b);
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        if b == 0.0 && d == 0.0 {
            return Self::from(a / c);
        }
        let norm = c * c + d * d;
        Self::Approximate { re: (a * c + b * d) / norm, im: (b * c - a * d) / norm }
    }

    /// Returns the remainder, which has the divisor's sign.
    pub(super) fn modulo(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return Some(Self::Exact(a - b * (a / b).floor()));
        }
        let (a, b) = (self.real()?, other.real()?);
        Some(Self::from(a - b * (a / b).floor()))
    }

    pub(super) fn absolute(&self) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(value.abs()),
            Self::Approximate { re, im } => Self::from(re.hypot(*im)),
        }
    }

    /// Returns the largest integer not above the value. Values within rounding error of an integer are rounded to it.
    pub(super) fn floor(&self) -> Self {
        match self {
            Self::Exact(value) => Self::Exact(value.floor()),
            Self::Approximate { re, im } if *im == 0.0 && re.is_finite() && re.abs() < 1e15 => {
                let nearest = re.round();
                let exact =
                    if (re - nearest).abs() < 1e-12 * re.abs().max(1.0) { nearest } else { re.floor() };
                Self::from(exact as i64)
            }
            Self::Approximate { re, im } if *im != 0.0 && re.is_finite() && im.is_finite() => {
                let (re, im) = (Self::from(*re).floor().parts().0, Self::from(*im).floor().parts().0);
                Self::Approximate { re, im }
            }
            Self::Approximate { .. } => Self::UNDEFINED,
        }
    }

    pub(super) fn ceiling(&self) -> Self {
        self.negated().floor().negated()
    }

    pub(super) fn power(&self, exponent: &Self) -> Self {
        if let (Self::Exact(base), Self::Exact(exponent)) = (self, exponent)
            && let Some(exact) = exact_power(base, exponent)
        {
            return exact;
        }
        let ((a, b), (c, d)) = (self.parts(), exponent.parts());
        if a == 0.0 && b == 0.0 {
            return match () {
                () if c > 0.0 => Self::from(0),
                () if c == 0.0 => Self::from(1),
                () => Self::INFINITE,
            };
        }
        if b == 0.0 && d == 0.0 && (a > 0.0 || c.fract() == 0.0) {
            return Self::from(a.powf(c));
        }
        let (log_radius, angle) = (a.hypot(b).ln(), b.atan2(a));
        let radius = (c * log_radius - d * angle).exp();
        let angle = d * log_radius + c * angle;
        Self::Approximate { re: radius * angle.cos(), im: radius * angle.sin() }
    }

    pub(super) fn square_root(&self) -> Self {
        self.power(&Self::Exact(Rational::new(BigInt::one(), BigInt::from(2))))
    }

    pub(super) fn factorial(&self) -> Self {
        let Some(n) = self.integer() else { return Self::UNDEFINED };
        if n.is_negative() {
            return Self::INFINITE;
        }
        match n.to_u32() {
            Some(n) if n <= FACTORIAL_MAX => {
                Self::from((2..=n).fold(BigInt::one(), |product, k| product * k))
            }
            _ => Self::INFINITE,
        }
    }

    /// Returns `None` if the double factorial is undefined.
    pub(super) fn double_factorial(&self) -> Option<Self> {
        let n = self.integer()?;
        if n < &BigInt::from(-1) {
            return None;
        }
        let Some(n) = n.to_u32().filter(|&n| n <= FACTORIAL_MAX) else {
            return Some(if n.is_negative() { Self::from(1) } else { Self::INFINITE });
        };
        Some(Self::from((1..=n).rev().step_by(2).fold(BigInt::one(), |product, k| product * k)))
    }

    pub(super) fn binomial(&self, k: &Self) -> Self {
        let (Self::Exact(n), Some(k)) = (self, k.integer()) else { return Self::UNDEFINED };
        let mut k = k.clone();
        if n.is_integer() && !n.is_negative() {
            // The smaller of the two equivalent indices takes fewer steps.
            let mirrored = n.numer() - &k;
            if mirrored < k {
                k = mirrored;
            }
        }
        if k.is_negative() {
            return Self::from(0);
        }
        match k.to_u32() {
            Some(k) if k <= BINOMIAL_MAX && n.numer().bits() * u64::from(k) <= POWER_BITS_MAX => {
                let mut result = Rational::one();
                for i in 0..k {
                    result = result * (n - Rational::from_integer(BigInt::from(i)))
                        / Rational::from_integer(BigInt::from(i + 1));
                }
                Self::Exact(result)
            }
            _ => Self::INFINITE,
        }
    }

    pub(super) fn gcd(&self, other: &Self) -> Option<Self> {
        Some(Self::from(self.integer()?.gcd(other.integer()?)))
    }

    pub(super) fn lcm(&self, other: &Self) -> Option<Self> {
        Some(Self::from(self.integer()?.lcm(other.integer()?)))
    }

    pub(super) fn natural_logarithm(&self) -> Self {
        if self.is_zero() {
            return Self::INFINITE;
        }
        if *self == Self::from(1) {
            return Self::from(0);
        }
        let (re, im) = self.parts();
        if im == 0.0 && re > 0.0 {
            return Self::from(re.ln());
        }
        Self::Approximate { re: re.hypot(im).ln(), im: im.atan2(re) }
    }

    /// Returns the logarithm to a base, exactly if value and base are powers of one integer.
    pub(super) fn logarithm(&self, base: &Self) -> Self {
        if let (Self::Exact(value), Self::Exact(base)) = (self, base)
            && base > &Rational::one()
            && value.is_positive()
        {
            let guess = (rational_to_f64(value).ln() / rational_to_f64(base).ln()).round();
            if guess.abs() < 1e6 {
                let exponent = Self::from(guess as i64);
                if Self::Exact(base.clone()).power(&exponent) == *self {
                    return exponent;
                }
            }
        }
        self.natural_logarithm().divided_by(&base.natural_logarithm())
    }

    /// Applies a function of real numbers. An integer result of an exact argument, such as sin 0, is exact.
    pub(super) fn map_real(&self, function: impl Fn(f64) -> f64) -> Self {
        match self.real().map(function) {
            Some(result)
                if matches!(self, Self::Exact(_)) && result.fract() == 0.0 && result.abs() < 1e15 =>
            {
                #[allow(clippy::cast_possible_truncation)] // whole and small
                Self::from(result as i64)
            }
            Some(result) => Self::from(result),
            None => Self::UNDEFINED,
        }
    }

    /// Returns the text of the number as part of an expression.
    pub(super) fn inner_text(&self) -> String {
        self.exact_text().unwrap_or_else(|| python::float_repr(self.parts().0))
    }

    /// Returns the text of the number if it is exact.
    pub(super) fn exact_text(&self) -> Option<String> {
        match self {
            Self::Exact(value) => Some(value.to_string()),
            Self::Approximate { .. } => None,
        }
    }
}

/// Returns `base ^ exponent` as a fraction if it is rational and not too large.
fn exact_power(base: &Rational, exponent: &Rational) -> Option<Number> {
    let bits = base.numer().bits().max(base.denom().bits());
    if exponent.is_integer() {
        let exponent = exponent.numer();
        if base.is_zero() && exponent.is_negative() {
            return Some(Number::INFINITE);
        }
        if base.is_zero() || base.is_one() {
            return Some(Number::Exact(if exponent.is_zero() { Rational::one() } else { base.clone() }));
        }
        let magnitude = exponent.magnitude().to_u64()?;
        if magnitude.saturating_mul(bits) > POWER_BITS_MAX {
            return None;
        }
        let magnitude = u32::try_from(magnitude).ok()?;
        let (numerator, denominator) = (base.numer().pow(magnitude), base.denom().pow(magnitude));
        return Some(Number::Exact(if exponent.is_negative() {
            Rational::new(denominator, numerator)
        } else {
            Rational::new(numerator, denominator)
        }));
    }
    let degree = exponent.denom().to_u32().filter(|&degree| degree <= 64)?;
    if base.is_negative() || bits > POWER_BITS_MAX {
        return None;
    }
    let root = Rational::new(exact_root(base.numer(), degree)?, exact_root(base.denom(), degree)?);
    exact_power(&root, &Rational::from_integer(exponent.numer().clone()))
}

fn exact_root(value: &BigInt, degree: u32) -> Option<BigInt> {
    let root = value.nth_root(degree);
    (root.pow(degree) == *value).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(numerator: i64, denominator: i64) -> Number {
        Number::Exact(Rational::new(BigInt::from(numerator), BigInt::from(denominator)))
    }

    #[test]
    fn roots_of_squares_stay_exact() {
        assert_eq!(Number::from(4900).square_root(), Number::from(70));
        assert_eq!(ratio(9, 4).power(&ratio(3, 2)), ratio(27, 8));
        assert!(matches!(Number::from(2).square_root(), Number::Approximate { .. }));
        assert_eq!(Number::from(-4).square_root().parts().1, 2.0);
    }

    #[test]
    fn sizes_are_bounded() {
        let huge = Number::from(9).power(&Number::from(10_000_000));
        assert!(!huge.is_finite());
        assert!(!Number::from(1_000_000).factorial().is_finite());
        assert_eq!(
            Number::from(2).power(&Number::from(1000)).modulo(&Number::from(1000)),
            Some(Number::from(376))
        );
    }

    #[test]
    fn fractions_become_doubles_without_overflow() {
        let large = BigInt::from(10).pow(2000);
        assert_eq!(rational_to_f64(&Rational::new(&large * 7, large.clone() * 2)), 3.5);
        assert_eq!(rational_to_f64(&Rational::new(BigInt::one(), large.clone())), 0.0);
        assert_eq!(rational_to_f64(&Rational::from_integer(large)), f64::INFINITY);
        assert_eq!(rational_to_f64(&Rational::new(BigInt::from(-1), BigInt::from(3))), -1.0 / 3.0);
    }

    #[test]
    fn combinatorial_functions() {
        assert_eq!(Number::from(8).binomial(&Number::from(6)), Number::from(28));
        assert_eq!(Number::from(5).binomial(&Number::from(7)), Number::from(0));
        assert_eq!(Number::from(-2).binomial(&Number::from(3)), Number::from(-4));
        assert_eq!(Number::from(7).double_factorial(), Some(Number::from(105)));
        assert_eq!(Number::from(0).double_factorial(), Some(Number::from(1)));
        assert_eq!(ratio(1, 2).double_factorial(), None);
        assert_eq!(Number::from(-7).modulo(&Number::from(5)), Some(Number::from(3)));
        assert_eq!(Number::from(1024).logarithm(&Number::from(2)), Number::from(10));
    }
}
