//! Parses and evaluates infix expressions in one pass.

use super::NotInfix;
use super::arithmetic::{add, bitwise, comparison_text, divide, modulo, multiply, negate, raise, scalar};
use super::functions::{call, value_of_name};
use super::term::{Term, TermResult};
use super::token::Token;
use crate::scorers::boxed::number::Number;

/// Maximum nesting depth of parentheses, signs and powers.
const DEPTH_MAX: u32 = 100;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

pub(super) fn parse(tokens: &[Token]) -> TermResult {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let term = parser.tuple()?;
    if parser.at == tokens.len() { Ok(term) } else { Err(NotInfix) }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next_is(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == operator)
    }

    fn accept(&mut self, operator: &str) -> bool {
        let found = self.next_is(operator);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<(), NotInfix> {
        if self.accept(operator) { Ok(()) } else { Err(NotInfix) }
    }

    fn accept_any(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let found = operators.iter().find(|operator| self.next_is(operator))?;
        self.at += 1;
        Some(found)
    }

    fn accept_name(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let Some(Token::Name(name)) = self.peek() else { return None };
        let found = names.iter().find(|wanted| *wanted == name)?;
        self.at += 1;
        Some(found)
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> TermResult) -> TermResult {
        if self.depth >= DEPTH_MAX {
            return Err(NotInfix);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn tuple(&mut self) -> TermResult {
        let first = self.logical()?;
        if !self.next_is(",") {
            return Ok(first);
        }
        let mut entries = vec![first];
        while self.accept(",") {
            if self.at == self.tokens.len() || self.next_is(")") {
                break;
            }
            entries.push(self.logical()?);
        }
        Ok(Term::List(entries))
    }

    fn logical(&mut self) -> TermResult {
        let mut left = self.comparison()?;
        while let Some(word) = self.accept_name(&["and", "or"]) {
            let right = self.comparison()?;
            // As in Python, `and` and `or` return one of their operands, depending on the truth of the left one.
            left = if left.counts_as_true().ok_or(NotInfix)? == (word == "and") { right } else { left };
        }
        Ok(left)
    }

    fn comparison(&mut self) -> TermResult {
        if self.accept_name(&["not"]).is_some() {
            let operand = self.nested(Self::comparison)?;
            return Ok(Term::Symbolic(format!("~{}", operand.text())));
        }
        let mut left = self.bits()?;
        loop {
            let operator = match self.accept_any(&["<=", ">=", "==", "!=", "<", ">"]) {
                Some(operator) => operator,
                None => match self.accept_name(&["in", "is"]) {
                    Some(word) => word,
                    None => return Ok(left),
                },
            };
            let right = self.bits()?;
            let has_order = |term: &Term| !matches!(term, Term::List(_)) && !term.is_complex();
            if operator.starts_with(['<', '>']) && !(has_order(&left) && has_order(&right)) {
                return Err(NotInfix);
            }
            left = Term::Symbolic(comparison_text(operator, &left, &right));
        }
    }

    fn bits(&mut self) -> TermResult {
        let mut left = self.sum()?;
        while let Some(operator) = self.accept_any(&["|", "&", "^", "<<", ">>"]) {
            let right = self.sum()?;
            left = bitwise(operator, &left, &right)?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> TermResult {
        let mut left = self.product()?;
        while let Some(operator) = self.accept_any(&["+", "-"]) {
            let right = self.product()?;
            left = if operator == "+" { add(left, right)? } else { add(left, negate(right)?)? };
        }
        Ok(left)
    }

    fn product(&mut self) -> TermResult {
        let mut left = self.signed()?;
        while let Some(operator) = self.accept_any(&["*", "/", "//", "%", "@"]) {
            let right = self.signed()?;
            left = match operator {
                "*" => multiply(left, right)?,
                "/" => divide(left, right)?,
                "//" => match divide(left, right)? {
                    Term::Number(quotient) => Term::Number(quotient.floor()),
                    other => Term::Symbolic(format!("floor({})", other.text())),
                },
                "%" => modulo(left, right)?,
                _ => return Err(NotInfix),
            };
        }
        Ok(left)
    }

    fn signed(&mut self) -> TermResult {
        match self.accept_any(&["-", "+", "~"]) {
            Some("-") => negate(self.nested(Self::signed)?),
            Some("+") => self.nested(Self::signed).and_then(scalar),
            Some(_) => match self.nested(Self::signed)? {
                Term::Number(number) => {
                    let integer = number.integer().ok_or(NotInfix)?;
                    Ok(Term::Number(Number::from(-integer - 1)))
                }
                Term::Symbolic(name)
                    if !name.contains(|c: char| c.is_ascii_punctuation() && c != '_' && c != '~') =>
                {
                    Ok(Term::Symbolic(format!("~{name}")))
                }
                _ => Err(NotInfix),
            },
            None => self.power(),
        }
    }

    fn power(&mut self) -> TermResult {
        let base = self.postfix()?;
        if !self.accept("**") {
            return Ok(base);
        }
        let exponent = self.nested(Self::signed)?;
        raise(base, exponent)
    }

    fn postfix(&mut self) -> TermResult {
        let mut term = self.atom()?;
        loop {
            if self.accept("!") {
                let double = self.accept("!");
                if self.next_is("!") {
                    return Err(NotInfix);
                }
                term = match scalar(term)? {
                    Term::Number(number) if double => {
                        Term::Number(number.double_factorial().ok_or(NotInfix)?)
                    }
                    Term::Number(number) => Term::Number(number.factorial()),
                    other if double => Term::Symbolic(format!("factorial2({})", other.text())),
                    other => Term::Symbolic(format!("factorial({})", other.text())),
                };
            } else if self.next_is("(") || self.next_is("[") || self.next_is(".") {
                // No term in this position can be called, indexed or have attributes.
                return Err(NotInfix);
            } else {
                return Ok(term);
            }
        }
    }

    fn atom(&mut self) -> TermResult {
        match self.peek().cloned() {
            Some(Token::Number(number)) => {
                self.at += 1;
                Ok(Term::Number(number))
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                if self.accept("(") {
                    let arguments = self.arguments()?;
                    return call(&name, &arguments);
                }
                value_of_name(&name)
            }
            Some(Token::Operator("(")) => {
                self.at += 1;
                if self.accept(")") {
                    return Ok(Term::List(Vec::new()));
                }
                let inner = self.nested(Self::tuple)?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Operator("[")) => {
                self.at += 1;
                let mut entries = Vec::new();
                while !self.accept("]") {
                    entries.push(self.nested(Self::logical)?);
                    if !self.accept(",") {
                        self.expect("]")?;
                        break;
                    }
                }
                Ok(Term::List(entries))
            }
            _ => Err(NotInfix),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Term>, NotInfix> {
        let mut arguments = Vec::new();
        while !self.accept(")") {
            arguments.push(self.nested(Self::logical)?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }
}
