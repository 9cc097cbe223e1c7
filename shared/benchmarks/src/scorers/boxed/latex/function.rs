//! Functions of LaTeX expressions.

use super::node::{Function, Node, boxed};
use super::parser::{Parser, RELATIONS, RESERVED};
use super::token::Token;
use crate::scorers::boxed::number::Number;

impl Parser<'_> {
    pub(super) fn function(&mut self) -> Option<Node> {
        let name = self.command()?.to_owned();
        self.at += 1;
        match name.as_str() {
            "sqrt" => {
                let degree = if self.accept("[") { Some(self.inside("]", Self::expression)?) } else { None };
                let base = self.braced()?;
                let degree = degree.unwrap_or(Node::Number(Number::from(2)));
                Some(Node::Function(Function::Root, vec![base, degree]))
            }
            "overline" => Some(Node::Function(Function::Conjugate, vec![self.braced()?])),
            "int" => {
                self.accept_command("limits");
                while self.accept("_") || self.accept("^") {
                    self.script()?;
                }
                let integrand = self.expression()?;
                if matches!(self.peek(), Some(Token::Differential(_))) {
                    self.at += 1;
                }
                Some(Node::Opaque(format!("Integral({})", integrand.text())))
            }
            _ => self.elementary(&name),
        }
    }

    /// `\log_2 8`, `\sin^2(x)` and such.
    fn elementary(&mut self, name: &str) -> Option<Node> {
        let (mut below, mut above) = (None, None);
        for _ in 0..2 {
            if below.is_none() && self.accept("_") {
                below = Some(self.script()?);
            } else if above.is_none() && self.accept("^") {
                above = Some(self.script()?);
            }
        }
        let argument = if self.next_is("(") {
            self.at += 1;
            let argument = self.nested(Self::expression)?;
            while self.accept(",") {
                self.nested(Self::expression)?;
            }
            self.expect(")")?;
            argument
        } else {
            let outer = std::mem::replace(&mut self.bare_argument, true);
            let argument = self.nested(|parser| parser.product(false));
            self.bare_argument = outer;
            argument?
        };
        let inverse = matches!(&above, Some(Node::Number(number)) if *number == Number::from(-1));
        let node = match name {
            "exp" => Node::Power(boxed(Node::Symbol("e".into())), boxed(argument)),
            "log" | "ln" | "lg" => {
                let base = below.unwrap_or_else(|| {
                    if name == "lg" { Node::Number(Number::from(10)) } else { Node::Symbol("e".into()) }
                });
                Node::Function(Function::Logarithm, vec![argument, base])
            }
            _ => {
                let (function, inverse_function) = real_function(name)?;
                if inverse && let Some(function) = inverse_function {
                    return Some(Node::Function(function, vec![argument]));
                }
                Node::Function(function, vec![argument])
            }
        };
        Some(match above {
            Some(exponent) => Node::Power(boxed(node), boxed(exponent)),
            None => node,
        })
    }
}

/// Functions that take an argument without parentheses.
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

/// A function by its command, and what `^{-1}` makes of it.
fn real_function(name: &str) -> Option<(Function, Option<Function>)> {
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
