//! Evaluates LaTeX expressions, for texts that aren't infix expressions.
//!
//! The grammar is that of the LaTeX parser in SymPy: implicit products bind tighter than division, and a power takes
//! one atom or a group. An expression ends where it can't continue, and the rest of the text is ignored.

mod evaluate;
mod function;
mod names;
mod node;
mod number;
mod parser;
mod token;

use super::number::Number;

/// Value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// A number.
    Number(Number),
    /// Text of a value with an unknown, a relation or a function.
    Symbolic(String),
}

/// Evaluates an expression; `None` if the text isn't one.
pub(super) fn evaluate(text: &str) -> Option<Outcome> {
    let node = parser::parse(&token::tokens(text.trim()))?;
    Some(match evaluate::constant(&node) {
        Some(number) => Outcome::Number(number),
        None => Outcome::Symbolic(node.text()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        match evaluate(text) {
            Some(Outcome::Number(number)) => {
                number.exact_text().unwrap_or_else(|| format!("≈{:.6}", number.parts().0))
            }
            Some(Outcome::Symbolic(text)) => format!("symbolic {text}"),
            None => "no".into(),
        }
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("70 498", "70498"),
            ("2(35)", "70"),
            ("(2)(35)", "70"),
            ("7 \\times 10", "70"),
            ("7 x 10", "70"),
            ("\\frac{140}{2}", "70"),
            ("\\frac12", "1/2"),
            ("\\dfrac 1 2", "1/2"),
            ("2^3^2", "64"),
            ("1/2(3)", "1/6"),
            ("|-70|", "70"),
            ("\\lfloor 70.9 \\rfloor", "70"),
            ("\\log_{2} 8", "3"),
            ("\\log_2(8)", "3"),
            ("5!", "120"),
            ("\\sqrt[3]{8}", "2"),
            ("\\binom{8}{4}", "70"),
            ("1,070", "1070"),
            ("070", "no"),
            ("70)", "70"),
            ("1}^{10} i", "1"),
            ("70_{10}", "70"),
            ("22 \\to 25", "22"),
            ("70 +", "70"),
            ("7^(2)", "7"),
            ("2(3", "2"),
            ("140..", "4"),
            ("1,0705..", "1070"),
            ("7.55.5", "≈41.250000"),
            ("f(3", "symbolic f"),
            ("7 \\to \\%", "7"),
            ("2\\pi", "≈6.283185"),
            ("\\frac{70x}{x}", "70"),
            ("\\mathbf{55}", "symbolic mathbf*55"),
            ("7 \\pmod{1000}", "symbolic 7*(pmod*1000)"),
            ("70 cm", "symbolic 70*(c*m)"),
            ("x \\leq 70", "symbolic x <= 70"),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in [
            "",
            "70\\%",
            "70%",
            "70 °",
            "\\frac{1}",
            "7.",
            "(70",
            "\\to",
            "7 & 0",
            "\\sqrt 4",
            "7 <",
            "7\\times\\%",
        ] {
            assert_eq!(value(text), "no", "{text:?}");
        }
        assert_eq!(value(&"{".repeat(5_000)), "no");
        assert_eq!(value(&"f(".repeat(50)), "no");
    }
}
