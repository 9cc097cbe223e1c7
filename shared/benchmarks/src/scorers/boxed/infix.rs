//! Evaluates infix expressions in Python notation, with the names that SymPy defines.
//!
//! MathArena's parser passes the text to SymPy. Since answers are compared with an integer, computing numbers is enough
//! here. An expression with an unknown is symbolic and equals no integer.

mod arithmetic;
mod functions;
mod parser;
mod term;
mod token;

pub(super) use term::Term;

/// The text isn't an infix expression, or its parts can't be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotInfix;

/// Evaluates an expression.
pub(super) fn evaluate(text: &str) -> Result<Term, NotInfix> {
    parser::parse(&token::tokens(&text.replace('\n', ""))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        match evaluate(text) {
            Ok(Term::Number(number)) => {
                number.exact_text().unwrap_or_else(|| format!("≈{:.6}", number.parts().0))
            }
            Ok(Term::Symbolic(text)) => format!("symbolic {text}"),
            Ok(Term::List(entries)) => format!("{} entries", entries.len()),
            Err(NotInfix) => "no".into(),
        }
    }

    #[test]
    fn arithmetic() {
        for (text, expected) in [
            ("60+10", "70"),
            ("-7**2", "-49"),
            ("2**-1", "1/2"),
            ("2**3**2", "512"),
            ("(49)**(1/2)*10", "70"),
            ("140/2", "70"),
            ("141//2", "70"),
            ("1070 % 1000", "70"),
            ("5!", "120"),
            ("2**3!", "64"),
            ("5!!", "15"),
            ("binomial(8, 4)", "70"),
            ("abs(-70)", "70"),
            ("max(3, 70, 5)", "70"),
            ("sqrt(4900)", "70"),
            ("0x46", "70"),
            ("70.0 + 0", "≈70.000000"),
            ("pi", "≈3.141593"),
            ("7_0", "70"),
            ("[70]", "1 entries"),
            ("(70, 71)", "2 entries"),
            ("x + 70", "symbolic x + 70"),
            ("70*cm", "symbolic 70*cm"),
            ("0*x", "0"),
            ("f(70)", "symbolic f(70)"),
            ("70 # metres", "70"),
            ("²", "symbolic ²"),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in [
            "", "70 cm", "7 0", "070", "70%", "(2)(35)", "70°", "~sqrt(x)", "\\pmod", "70!!!", "(7", "7)",
            "x.y", "1..2", "+",
        ] {
            assert_eq!(value(text), "no", "{text:?}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
        assert_eq!(value(&deep), "no");
        assert_eq!(value(&format!("{}1", "-".repeat(5_000))), "no");
    }
}
