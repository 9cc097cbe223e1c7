//! Resources of an environment, in old and new units.

use crate::model::Tpu;
use crate::node::{Fields, Value};
use crate::refusal::Refusal;

/// Reads a size in mebibytes: `KEY_mb` as an integer, or the old `KEY` as a text such as `2G`.
pub(super) fn size_mb(fields: &Fields<'_>, old_key: &str, key: &str) -> Result<Option<u64>, Refusal> {
    let size = fields.count(key)?;
    // The format's own program ignores the old field unless it is a text.
    let Some(Value::Text(text)) = fields.value(old_key) else { return Ok(size) };
    let old = parse_size_mb(text).ok_or_else(|| {
        fields.invalid(old_key, text, "a number with the unit `G`, `M` or `K`, such as `2G`")
    })?;
    match size {
        Some(size) if size != old => Err(fields.conflict(old_key, key)),
        _ => Ok(Some(old)),
    }
}

/// Parses a number with a unit. Fractions of a mebibyte are cut off.
fn parse_size_mb(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let (digits, factor) = if let Some(digits) = text.strip_suffix('G') {
        (digits, 1024.0)
    } else if let Some(digits) = text.strip_suffix('M') {
        (digits, 1.0)
    } else {
        (text.strip_suffix('K')?, 1.0 / 1024.0)
    };
    let digits = digits.trim();
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let megabytes = digits.parse::<f64>().ok().filter(|_| is_plain)? * factor;
    (megabytes < 1e12).then_some(megabytes as u64)
}

/// Reads the number of processors.
pub(super) fn cpus(fields: &Fields<'_>) -> Result<Option<f64>, Refusal> {
    match fields.number("cpus")? {
        Some(cpus) if cpus <= 0.0 => Err(fields.invalid("cpus", cpus.to_string(), "a number above 0")),
        other => Ok(other),
    }
}

/// Reads a slice of a TPU.
pub(super) fn tpu(fields: &Fields<'_>) -> Result<Option<Tpu>, Refusal> {
    let Some(tpu) = fields.table("tpu")? else { return Ok(None) };
    let topology = tpu.required_text("topology")?.trim();
    let is_size =
        |size: &str| !size.starts_with('0') && !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit());
    if topology.split('x').count() < 2 || !topology.split('x').all(is_size) {
        return Err(tpu.invalid("topology", topology, "sizes with `x` between them, such as `2x4`"));
    }
    Ok(Some(Tpu { kind: tpu.required_text("type")?.to_owned(), topology: topology.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::parse_size_mb;

    #[test]
    fn old_sizes_have_units() {
        for (text, expected) in [
            ("2G", Some(2048)),
            (" 1.5g ", Some(1536)),
            ("512M", Some(512)),
            ("2048K", Some(2)),
            ("1023K", Some(0)),
            ("2", None),
            ("2GB", None),
            ("-1G", None),
            ("G", None),
            ("infG", None),
            ("1e3M", None),
            ("", None),
        ] {
            assert_eq!(parse_size_mb(text), expected, "{text}");
        }
    }
}
