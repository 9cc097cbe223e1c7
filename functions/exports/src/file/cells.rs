//! Texts and numbers as cells of a table.

use bench_signing::canonical;

/// Code points of a prompt, response or expected answer that the table shows.
pub(crate) const TEXT_CHARS_MAX: usize = 500;

/// The first [`TEXT_CHARS_MAX`] code points.
pub(crate) fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// A text as a cell that no spreadsheet takes for a formula: one that could be gets an apostrophe in front, which
/// spreadsheets read as "this is text". NUL is left out, since readers of tables end there.
///
/// Spreadsheets look for the first character that means something, so white space and quotes before it do not
/// count, and the full-width forms of the signs are formulas too in some languages.
pub(crate) fn text_cell(text: &str) -> String {
    let text = text.replace('\0', "");
    let is_skipped =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\u{feff}' | '\u{200b}');
    let starts_with_control = text.starts_with(['\t', '\r', '\n']);
    let is_formula =
        text.trim_start_matches(is_skipped).starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    if starts_with_control || is_formula { format!("'{text}") } else { text }
}

/// [`text_cell`], empty for `None`.
pub(crate) fn maybe_text_cell(text: Option<&str>) -> String {
    text.map(text_cell).unwrap_or_default()
}

/// A number, zero included; empty for `None`. Floats have a point or an exponent, as in JSON.
pub(crate) fn number_cell(value: Option<f64>) -> String {
    value.and_then(|value| canonical::to_string(&value).ok()).unwrap_or_default()
}

/// An integer, zero included; empty for `None`.
pub(crate) fn integer_cell(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// `True`, `False` or empty.
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
