//! Parses functions in LaTeX expressions.

use super::names::real_function;
use super::node::{Function, Node, boxed};
use super::parser::Parser;
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

    /// Parses functions such as `\log_2 8` and `\sin^2(x)`.
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
