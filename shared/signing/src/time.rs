//! Times as exports write them.

use jiff::Timestamp;

/// RFC 3339 in UTC with whole seconds and `Z`; the fraction is cut off. The form of all times in a signed archive.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> String {
    format!("{}", time.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn fractions_are_cut_off() {
        let time = "2026-01-02T04:10:00.999999+01:00".parse().unwrap();
        assert_eq!(super::whole_seconds(time), "2026-01-02T03:10:00Z");
    }
}
