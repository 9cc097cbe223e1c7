//! Names in infix expressions: constants and functions.

use super::NotInfix;
use super::term::{Term, TermResult};
use crate::scorers::boxed::number::Number;

/// Returns the value of a bare name.
pub(super) fn value_of_name(name: &str) -> TermResult {
    Ok(match name {
        "pi" => Term::Number(Number::from(std::f64::consts::PI)),
        "E" | "e" => Term::Number(Number::from(std::f64::consts::E)),
        "I" => Term::Number(Number::IMAGINARY_UNIT),
        "oo" | "zoo" => Term::Number(Number::INFINITE),
        "nan" => Term::Number(Number::UNDEFINED),
        "GoldenRatio" => Term::Number(Number::from((1.0 + 5f64.sqrt()) / 2.0)),
        "EulerGamma" => Term::Number(Number::from(0.577_215_664_901_532_9)),
        "False" | "True" | "None" => Term::Symbolic(name.to_owned()),
        _ if is_keyword(name) => return Err(NotInfix),
        _ => Term::Symbolic(name.to_owned()),
    })
}

fn is_keyword(name: &str) -> bool {
    [
        "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
        "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
    ]
    .contains(&name)
}

/// Evaluates a function call. Unknown functions are symbolic.
pub(super) fn call(name: &str, arguments: &[Term]) -> TermResult {
    if is_keyword(name) {
        return Err(NotInfix);
    }
    let symbolic = || {
        Term::Symbolic(format!("{name}({})", arguments.iter().map(Term::text).collect::<Vec<_>>().join(", ")))
    };
    let mut numbers = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Term::Number(number) => numbers.push(number),
            _ => return Ok(symbolic()),
        }
    }
    let value = match (name, numbers.as_slice()) {
        ("sqrt", [x]) => x.square_root(),
        ("cbrt", [x]) => x.power(&Number::from(1).divided_by(&Number::from(3))),
        ("root", [x, n]) => x.power(&Number::from(1).divided_by(n)),
        ("Pow" | "pow", [x, y]) => x.power(y),
        ("Abs" | "abs", [x]) => x.absolute(),
        ("floor", [x]) => x.floor(),
        ("ceiling", [x]) => x.ceiling(),
        ("factorial", [x]) => x.factorial(),
        ("factorial2", [x]) => x.double_factorial().ok_or(NotInfix)?,
        ("binomial", [n, k]) => n.binomial(k),
        ("gamma", [x]) => x.minus(&Number::from(1)).factorial(),
        ("exp", [x]) => Number::from(std::f64::consts::E).power(x),
        ("log" | "ln", [x]) => x.natural_logarithm(),
        ("log", [x, base]) => x.logarithm(base),
        ("sin", [x]) => x.map_real(f64::sin),
        ("cos", [x]) => x.map_real(f64::cos),
        ("tan", [x]) => x.map_real(f64::tan),
        ("asin", [x]) => x.map_real(f64::asin),
        ("acos", [x]) => x.map_real(f64::acos),
        ("atan", [x]) => x.map_real(f64::atan),
        ("Integer" | "int", [x]) => integer_part(x).ok_or(NotInfix)?,
        ("Rational", [x, y]) => x.divided_by(y),
        ("Rational" | "Float" | "S" | "N" | "simplify" | "sympify" | "re", [x]) => (*x).clone(),
        ("Mod", [x, y]) => x.modulo(y).ok_or(NotInfix)?,
        ("gcd" | "igcd" | "lcm" | "ilcm", [] | [_]) => return Err(NotInfix),
        ("gcd" | "igcd", [x, rest @ ..]) => {
            rest.iter().try_fold((*x).clone(), |left, right| left.gcd(right)).ok_or(NotInfix)?
        }
        ("lcm" | "ilcm", [x, rest @ ..]) => {
            rest.iter().try_fold((*x).clone(), |left, right| left.lcm(right)).ok_or(NotInfix)?
        }
        ("max" | "Max", [x, rest @ ..]) => extreme(x, rest, |a, b| a > b)?,
        ("min" | "Min", [x, rest @ ..]) => extreme(x, rest, |a, b| a < b)?,
        _ => return Ok(symbolic()),
    };
    Ok(Term::Number(value))
}

fn integer_part(number: &Number) -> Option<Number> {
    let floor = number.absolute().floor();
    let negative = number.real()? < 0.0;
    Some(if negative { floor.negated() } else { floor })
}

fn extreme(first: &Number, rest: &[&Number], better: impl Fn(f64, f64) -> bool) -> Result<Number, NotInfix> {
    let mut best = first;
    for number in rest {
        if better(number.real().ok_or(NotInfix)?, best.real().ok_or(NotInfix)?) {
            best = number;
        }
    }
    Ok(best.clone())
}
