//! Names of LaTeX commands.

use super::node::Function;

pub(super) const RELATIONS: [&str; 9] =
    ["leq", "le", "leqq", "leqslant", "geq", "ge", "geqq", "geqslant", "neq"];

/// Commands that are neither names nor functions and are only valid in certain positions.
pub(super) const RESERVED: [&str; 14] = [
    "rangle",
    "to",
    "rightarrow",
    "Rightarrow",
    "longrightarrow",
    "Longrightarrow",
    "rfloor",
    "rceil",
    "times",
    "cdot",
    "div",
    "lim",
    "sum",
    "prod",
];

/// Returns true for functions whose argument may follow without parentheses.
pub(super) fn is_function_command(name: &str) -> bool {
    matches!(name, "sqrt" | "overline" | "int" | "exp" | "log" | "ln" | "lg") || real_function(name).is_some()
}

pub(super) fn is_keyword(name: &str) -> bool {
    is_function_command(name)
        || RESERVED.contains(&name)
        || RELATIONS.contains(&name)
        || matches!(
            name,
            "frac"
                | "dfrac"
                | "tfrac"
                | "binom"
                | "dbinom"
                | "tbinom"
                | "mathit"
                | "langle"
                | "lfloor"
                | "lceil"
        )
}

/// Returns the function of a command, and its inverse for `^{-1}`.
pub(super) fn real_function(name: &str) -> Option<(Function, Option<Function>)> {
    let real = |function: fn(f64) -> f64, name| Function::Real(function, name);
    Some(match name {
        "sin" => (real(f64::sin, "sin"), Some(real(f64::asin, "asin"))),
        "cos" => (real(f64::cos, "cos"), Some(real(f64::acos, "acos"))),
        "tan" => (real(f64::tan, "tan"), Some(real(f64::atan, "atan"))),
        "csc" => (real(|x| x.sin().recip(), "csc"), Some(real(|x| x.recip().asin(), "acsc"))),
        "sec" => (real(|x| x.cos().recip(), "sec"), Some(real(|x| x.recip().acos(), "asec"))),
        "cot" => (real(|x| x.tan().recip(), "cot"), Some(real(|x| x.recip().atan(), "acot"))),
        "sinh" => (real(f64::sinh, "sinh"), Some(real(f64::asinh, "asinh"))),
        "cosh" => (real(f64::cosh, "cosh"), Some(real(f64::acosh, "acosh"))),
        "tanh" => (real(f64::tanh, "tanh"), Some(real(f64::atanh, "atanh"))),
        "arcsin" => (real(f64::asin, "asin"), None),
        "arccos" => (real(f64::acos, "acos"), None),
        "arctan" => (real(f64::atan, "atan"), None),
        "arccsc" => (real(|x| x.recip().asin(), "acsc"), None),
        "arcsec" => (real(|x| x.recip().acos(), "asec"), None),
        "arccot" => (real(|x| x.recip().atan(), "acot"), None),
        "arsinh" => (real(f64::asinh, "asinh"), None),
        "arcosh" => (real(f64::acosh, "acosh"), None),
        "artanh" => (real(f64::atanh, "atanh"), None),
        _ => return None,
    })
}
