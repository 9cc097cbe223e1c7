//! Cells of a table.

use bench_signing::canonical;

/// Maximum length of a prompt, response or expected answer in the table, in code points.
pub(crate) const TEXT_CHARS_MAX: usize = 500;

/// Returns the first [`TEXT_CHARS_MAX`] code points.
pub(crate) fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Returns a text as a cell that spreadsheets don't interpret as a formula. A text that they could interpret
/// gets a leading apostrophe, which marks it as text. NUL is removed, since some readers of tables stop there.
///
/// Spreadsheets look for the first significant character, so leading white space and quotes are skipped, and
/// in some languages the full-width forms of the signs start formulas too.
pub(crate) fn text_cell(text: &str) -> String {
    let text = text.replace('\0', "");
    let is_skipped =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\u{feff}' | '\u{200b}');
    let starts_with_control = text.starts_with(['\t', '\r', '\n']);
    let is_formula =
        text.trim_start_matches(is_skipped).starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if starts_with_control || is_formula { format!("'{text}") } else { text }
}

/// Returns [`text_cell`], or an empty cell for `None`.
pub(crate) fn maybe_text_cell(text: Option<&str>) -> String {
    text.map(text_cell).unwrap_or_default()
}

/// Formats a number; empty for `None`. Floats have a point or an exponent, as in JSON.
pub(crate) fn number_cell(value: Option<f64>) -> String {
    value.and_then(|value| canonical::to_string(&value).ok()).unwrap_or_default()
}

/// Formats an integer; empty for `None`.
pub(crate) fn integer_cell(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Formats a Boolean as `True` or `False`; empty for `None`.
pub(crate) const fn bool_cell(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "True",
        Some(false) => "False",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_not_nothing() {
        assert_eq!((number_cell(Some(0.0)).as_str(), number_cell(None).as_str()), ("0.0", ""));
        assert_eq!((integer_cell(Some(0)).as_str(), integer_cell(None).as_str()), ("0", ""));
        assert_eq!(number_cell(Some(1e-7)), "1e-07");
        assert_eq!(number_cell(Some(f64::NAN)), "");
        assert_eq!((bool_cell(Some(false)), bool_cell(None)), ("False", ""));
    }

    #[test]
    fn what_a_spreadsheet_would_execute_becomes_text() {
        for formula in [
            "=1+1",
            "+1",
            "-1+cmd|' /C calc'!A0",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "\tplain",
            "  =1",
            "\"=1",
            "'=1",
            "' =1",
            "\u{a0}=1",
            "\u{feff}=1",
            "\0=1",
            "＝1",
            "－1",
        ] {
            let cell = text_cell(formula);
            assert_eq!(cell, format!("'{}", formula.replace('\0', "")), "{formula:?}");
        }
        for harmless in ["", "a=b", "1-2", "A", "(B)", "é", "'quoted'", "  text", "x\t=1"] {
            assert_eq!(text_cell(harmless), harmless);
        }
    }

    #[test]
    fn texts_are_cut_by_code_points() {
        assert_eq!(cut("short"), "short");
        let exact = "😀".repeat(TEXT_CHARS_MAX);
        assert_eq!(cut(&exact), exact);
        assert_eq!(cut(&format!("{exact}é")), exact);
    }
}
