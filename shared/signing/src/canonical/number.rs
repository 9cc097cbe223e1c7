//! Floats in canonical JSON.

use super::CanonicalError;

/// Decimal exponents of numbers that are written without an exponent: from 10^-4 to below 10^16.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..16;

/// Appends the shortest text that parses to the same double, always with a point or an exponent.
pub(super) fn write_float(out: &mut Vec<u8>, value: f64) -> Result<(), CanonicalError> {
    if !value.is_finite() {
        return Err(CanonicalError::NonFinite);
    }
    let text = shortest(value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();

    if value.is_sign_negative() {
        out.push(b'-');
    }
    if !PLAIN_EXPONENTS.contains(&exponent) {
        let (first, rest) = digits.split_at(1.min(digits.len()));
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    } else if let Ok(whole_digits) = usize::try_from(exponent + 1)
        && whole_digits > 0
    {
        let (whole, fraction) = digits.split_at(whole_digits.min(digits.len()));
        out.extend_from_slice(whole);
        out.extend(std::iter::repeat_n(b'0', whole_digits - whole.len()));
        out.push(b'.');
        out.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs().saturating_sub(1) as usize));
        out.extend_from_slice(&digits);
    }
    Ok(())
}

/// Returns the shortest digits that parse to the same double, and of those the nearest to it; if two are equally near,
/// the one with the even last digit. The format is that of `{:e}`, as in `1.25e-7`.
fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    // To find the shortest text, Rust rounds ties up; with a given number of digits, it rounds them to even.
    let digits = text.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit).count();
    let nearest = format!("{value:.*e}", digits.saturating_sub(1));
    // Next to a power of two, the nearest text may parse to another double.
    if nearest.parse() == Ok(value) { nearest } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        super::write_float(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn limits_between_the_two_forms() {
        assert_eq!(text(0.0), "0.0");
        assert_eq!(text(0.0001), "0.0001");
        assert_eq!(text(0.00009999999999999999), "9.999999999999999e-05");
        assert_eq!(text(9999999999999998.0), "9999999999999998.0");
        assert_eq!(text(1e16), "1e+16");
        assert_eq!(text(-123456.75), "-123456.75");
        assert_eq!(text(2e23), "2e+23");
        assert_eq!(text(1e100), "1e+100");
        assert_eq!(text(f64::MIN_POSITIVE), "2.2250738585072014e-308");
    }

    /// Values compared with CPython's `repr`.
    #[test]
    #[allow(clippy::excessive_precision, reason = "these are the exact values, halfway between two texts")]
    fn ties_between_two_shortest_texts_go_to_the_even_digit() {
        assert_eq!(text(904_169_666_483_526.25), "904169666483526.2");
        assert_eq!(text(1_753_385_735_814_841.25), "1753385735814841.2");
        assert_eq!(text(1_753_385_735_814_841.75), "1753385735814841.8");
        assert_eq!(text(23_989_586_323_222.812_5), "23989586323222.812");
        assert_eq!(text(9.5367431640625e-7), "9.5367431640625e-07");
        assert_eq!(text(5e-324), "5e-324");
    }

    #[test]
    fn not_finite_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                super::write_float(&mut Vec::new(), value),
                Err(super::CanonicalError::NonFinite)
            ));
        }
    }

    proptest! {
        #[test]
        fn reads_back_and_stays_a_float(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = text(value);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert!(text.contains(['.', 'e']), "{}", text);
            let magnitude = value.abs();
            let plain = magnitude == 0.0 || (1e-4..1e16).contains(&magnitude);
            prop_assert_eq!(text.contains('e'), !plain, "{}", text);
            prop_assert!(serde_json::from_str::<f64>(&text).is_ok());
        }
    }
}
