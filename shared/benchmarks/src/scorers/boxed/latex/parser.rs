//! Parses LaTeX expressions.

use super::evaluate;
use super::names::{RELATIONS, RESERVED, is_function_command, is_keyword};
use super::node::{Function, Node, boxed};
use super::token::Token;
use crate::python;
use crate::scorers::boxed::number::Number;

/// Maximum nesting depth of groups and signs.
const DEPTH_MAX: u32 = 60;

/// Maximum number of parsing steps. Trying a name first as a function call and then as a symbol could otherwise double
/// the work with each parenthesis.
const STEPS_MAX: u32 = 20_000;

const PRODUCT_COMMANDS: [&str; 3] = ["times", "cdot", "div"];

/// State of the parser.
pub(super) struct Parser<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
    depth: u32,
    /// Number of open `|`. If any is open, the next `|` closes it.
    bars: u32,
    steps: u32,
    /// True inside a function argument without parentheses.
    pub(super) bare_argument: bool,
    /// True if SymPy's parser would reject the whole text.
    pub(super) failed: bool,
}

/// Parses the expression at the start of a text. The rest of the text is ignored unless it starts with a character that
/// isn't valid in LaTeX expressions.
pub(super) fn parse(tokens: &[Token]) -> Option<Node> {
    let mut parser =
        Parser { tokens, at: 0, depth: 0, bars: 0, steps: 0, bare_argument: false, failed: false };
    let node = parser.relation()?;
    let ends_well = !parser.failed && parser.peek() != Some(&Token::Unknown);
    ends_well.then_some(node)
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn next_is(&self, mark: &str) -> bool {
        matches!(self.peek(), Some(Token::Mark(found)) if *found == mark)
    }

    pub(super) fn accept(&mut self, mark: &str) -> bool {
        let found = self.next_is(mark);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, mark: &str) -> Option<()> {
        self.accept(mark).then_some(())
    }

    pub(super) fn command(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Command(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn accept_command(&mut self, name: &str) -> bool {
        let found = self.command() == Some(name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.steps += 1;
        if self.depth >= DEPTH_MAX || self.steps > STEPS_MAX {
            self.failed = true;
            return None;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Tries to parse something optional, and restores the position if that fails. SymPy's parser also looks ahead, and
    /// stops where continuing would fail.
    fn optional<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = (self.at, self.bars, self.depth, self.bare_argument);
        let result = inner(self);
        if result.is_none() {
            self.failed |= self.peek() == Some(&Token::Unknown);
            (self.at, self.bars, self.depth, self.bare_argument) = before;
        }
        result
    }

    /// Parses an expression inside a pair of delimiters, with a fresh count of open bars.
    pub(super) fn inside<T>(&mut self, close: &str, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = (std::mem::take(&mut self.bars), std::mem::take(&mut self.bare_argument));
        let result = self.nested(inner);
        (self.bars, self.bare_argument) = before;
        let result = result?;
        self.expect(close)?;
        Some(result)
    }

    fn relation(&mut self) -> Option<Node> {
        let mut left = self.expression()?;
        loop {
            let sign = match self.peek() {
                Some(Token::Mark(mark @ ("<" | ">" | "="))) => *mark,
                Some(Token::Command(name)) if RELATIONS.contains(&name.as_str()) => match name.as_str() {
                    "neq" => "!=",
                    name if name.starts_with('l') => "<=",
                    _ => ">=",
                },
                _ => return Some(left),
            };
            self.at += 1;
            let right = self.expression()?;
            // Complex and infinite numbers have no order.
            let sides = (evaluate::constant(&left), evaluate::constant(&right));
            let truth = match &sides {
                (Some(a), Some(b)) => a.real().zip(b.real()).and_then(|(a, b)| match sign {
                    "<" => Some(a < b),
                    ">" => Some(a > b),
                    "<=" => Some(a <= b),
                    ">=" => Some(a >= b),
                    _ => None,
                }),
                _ => None,
            };
            let unordered = |side: Option<Number>| {
                side.is_some_and(|number| number.parts().1 != 0.0 || !number.is_finite())
            };
            self.failed |= sign != "!=" && (unordered(sides.0) || unordered(sides.1));
            left = Node::Opaque(match truth {
                Some(true) => "True".into(),
                Some(false) => "False".into(),
                None => format!("{} {sign} {}", left.text(), right.text()),
            });
        }
    }

    pub(super) fn expression(&mut self) -> Option<Node> {
        let mut left = self.product(true)?;
        while let Some((plus, right)) = self.optional(|parser| {
            let plus = parser.accept("+");
            if !plus {
                parser.expect("-")?;
            }
            Some((plus, parser.product(true)?))
        }) {
            left = if plus {
                Node::Add(boxed(left), boxed(right))
            } else {
                Node::Subtract(boxed(left), boxed(right))
            };
        }
        Some(left)
    }

    pub(super) fn product(&mut self, functions: bool) -> Option<Node> {
        let mut left = self.signed(functions)?;
        while let Some((divides, right)) = self.optional(|parser| {
            let divides = match parser.peek()? {
                Token::Mark("*") => false,
                Token::Mark("/" | ":") => true,
                Token::Command(name) if PRODUCT_COMMANDS.contains(&name.as_str()) => name == "div",
                _ => return None,
            };
            parser.at += 1;
            Some((divides, parser.signed(functions)?))
        }) {
            left = if divides {
                Node::Divide(boxed(left), boxed(right))
            } else {
                Node::Multiply(boxed(left), boxed(right))
            };
        }
        Some(left)
    }

    fn signed(&mut self, functions: bool) -> Option<Node> {
        if self.accept("+") {
            return self.nested(|parser| parser.signed(functions));
        }
        if self.accept("-") {
            return Some(match self.nested(|parser| parser.signed(functions))? {
                Node::Number(number) => Node::Number(number.negated()),
                other => Node::Negate(boxed(other)),
            });
        }
        let mut factors = vec![self.postfix(true)?];
        while self.starts_factor(functions)
            && let Some(factor) = self.optional(|parser| parser.postfix(functions))
        {
            factors.push(factor);
        }
        multiply_all(factors)
    }

    /// Returns true if another factor follows without an operator.
    fn starts_factor(&self, functions: bool) -> bool {
        match self.peek() {
            Some(Token::Digit(_) | Token::Letter(_) | Token::Differential(_)) => true,
            Some(Token::Mark("|")) => self.bars == 0,
            Some(Token::Mark(mark)) => matches!(*mark, "(" | "[" | "{" | "\\{" | "\\left|"),
            Some(Token::Command(name)) => {
                let name = name.as_str();
                if is_function_command(name) {
                    functions
                } else {
                    !RESERVED.contains(&name) && !RELATIONS.contains(&name)
                }
            }
            _ => false,
        }
    }

    fn postfix(&mut self, functions: bool) -> Option<Node> {
        let mut node = self.power(functions)?;
        loop {
            if self.accept("!") {
                node = Node::Function(Function::Factorial, vec![node]);
            } else if self.next_is("|") && self.evaluation_follows() {
                self.at += 1;
                while self.accept("_") || self.accept("^") {
                    self.expect("{")?;
                    self.inside("}", Self::relation)?;
                }
                // There is nothing to substitute without an unknown.
                if node.has_symbol() {
                    node = Node::Opaque(format!("Subs({})", node.text()));
                }
            } else {
                return Some(node);
            }
        }
    }

    /// Returns true if the `|` means "evaluated at". Before a `^`, it closes an open absolute value instead.
    fn evaluation_follows(&self) -> bool {
        let script = self.tokens.get(self.at + 1);
        (script == Some(&Token::Mark("_")) || (script == Some(&Token::Mark("^")) && self.bars == 0))
            && self.tokens.get(self.at + 2) == Some(&Token::Mark("{"))
    }

    fn power(&mut self, functions: bool) -> Option<Node> {
        let mut base = self.component(functions)?;
        while let Some(exponent) = self.optional(|parser| {
            parser.expect("^")?;
            let is_digit = matches!(parser.peek(), Some(Token::Digit(_)));
            let exponent = parser.script();
            // SymPy's parser commits to a digit or a subscript before it has read it.
            parser.failed |= is_digit && exponent.is_none();
            let exponent = exponent?;
            if parser.accept("_") {
                let subscript = parser.script();
                parser.failed |= subscript.is_none();
            }
            Some(exponent)
        }) {
            base = Node::Power(boxed(base), boxed(exponent));
        }
        Some(base)
    }

    /// Parses the operand of `^` or `_`: one atom, or a group in braces.
    pub(super) fn script(&mut self) -> Option<Node> {
        if self.accept("{") {
            return self.inside("}", Self::expression);
        }
        self.nested(Self::atom)
    }

    fn component(&mut self, functions: bool) -> Option<Node> {
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("\\{", "\\}")] {
            if self.accept(open) {
                return self.inside(close, Self::expression);
            }
        }
        if self.accept("|") {
            self.bars += 1;
            let inner = self.nested(Self::expression);
            self.bars -= 1;
            let inner = inner?;
            if self.accept_command("rangle") {
                return Some(Node::Opaque(format!("|{}>", inner.text())));
            }
            self.expect("|")?;
            return Some(Node::Function(Function::Absolute, vec![inner]));
        }
        if self.accept_command("lfloor") {
            return self.rounding(Function::Floor, "rfloor");
        }
        if self.accept_command("lceil") {
            return self.rounding(Function::Ceiling, "rceil");
        }
        if self.command().is_some_and(is_function_command) {
            return if functions { self.function() } else { None };
        }
        if functions && self.call_follows() {
            let call = self.optional(|parser| parser.nested(Self::call));
            if call.is_some() {
                return call;
            }
        }
        self.atom()
    }

    fn rounding(&mut self, function: Function, close: &str) -> Option<Node> {
        let bars = std::mem::take(&mut self.bars);
        let inner = self.nested(Self::expression);
        self.bars = bars;
        let inner = inner?;
        self.accept_command(close).then(|| Node::Function(function, vec![inner]))
    }

    /// Returns true if a name is directly followed by a parenthesis.
    fn call_follows(&self) -> bool {
        let is_name = match self.peek() {
            Some(Token::Letter(_)) => true,
            Some(Token::Command(name)) => !is_keyword(name),
            _ => false,
        };
        is_name && matches!(self.tokens.get(self.at + 1), Some(Token::Mark("(" | "_") | Token::Quotes(_)))
    }

    fn call(&mut self) -> Option<Node> {
        let name = self.name()?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        loop {
            let bars = std::mem::take(&mut self.bars);
            let argument = self.expression();
            self.bars = bars;
            arguments.push(argument?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Some(Node::Call(name, arguments))
    }

    /// Parses a letter or command with its subscript and primes.
    fn name(&mut self) -> Option<String> {
        let mut name = match self.peek()? {
            Token::Letter(letter) => letter.to_string(),
            Token::Command(name) if !is_keyword(name) => name.clone(),
            _ => return None,
        };
        self.at += 1;
        let mut quotes = self.quotes();
        if self.accept("_") {
            let subscript = self.script()?;
            name.push_str(&format!("_{{{}}}", subscript.text()));
            if quotes == 0 {
                quotes = self.quotes();
            }
        }
        Some(name + &"'".repeat(quotes))
    }

    fn quotes(&mut self) -> usize {
        match self.peek() {
            Some(Token::Quotes(count)) => {
                let count = *count;
                self.at += 1;
                count
            }
            _ => 0,
        }
    }

    fn atom(&mut self) -> Option<Node> {
        match self.peek()? {
            Token::Digit(_) => self.number(),
            Token::Differential(variable) => {
                let node = Node::Symbol(format!("d{variable}"));
                self.at += 1;
                Some(node)
            }
            Token::Command(name) => match name.as_str() {
                "frac" | "dfrac" | "tfrac" => self.fraction(),
                "binom" | "dbinom" | "tbinom" => {
                    self.at += 1;
                    let n = self.braced()?;
                    let k = self.braced()?;
                    Some(Node::Function(Function::Binomial, vec![n, k]))
                }
                "mathit" => {
                    self.at += 1;
                    self.expect("{")?;
                    let mut text = String::new();
                    while let Some(Token::Letter(letter)) = self.peek() {
                        text.push(*letter);
                        self.at += 1;
                    }
                    self.expect("}")?;
                    Some(Node::Symbol(text))
                }
                "langle" => {
                    self.at += 1;
                    self.bars += 1;
                    let inner = self.nested(Self::expression);
                    self.bars -= 1;
                    let inner = inner?;
                    (self.accept("|") || self.accept("\\right|"))
                        .then(|| Node::Opaque(format!("<{}|", inner.text())))
                }
                _ => self.name().map(Node::Symbol),
            },
            Token::Letter(_) => self.name().map(Node::Symbol),
            Token::Mark("\\left|") => {
                self.at += 1;
                let inner = self.nested(Self::expression)?;
                self.accept_command("rangle").then(|| Node::Opaque(format!("|{}>", inner.text())))
            }
            _ => None,
        }
    }

    pub(super) fn braced(&mut self) -> Option<Node> {
        self.expect("{")?;
        self.inside("}", Self::expression)
    }

    pub(super) fn digit(&mut self) -> Option<char> {
        match self.peek() {
            Some(Token::Digit(digit)) => {
                let digit = *digit;
                self.at += 1;
                Some(digit)
            }
            _ => None,
        }
    }

    fn fraction(&mut self) -> Option<Node> {
        self.at += 1;
        let mut part = || match self.digit() {
            Some(digit) => {
                python::parse_int(&digit.to_string()).map(|value| Node::Number(Number::from(value)))
            }
            None => self.braced(),
        };
        let (upper, lower) = (part()?, part()?);
        if let (Node::Symbol(d), Node::Symbol(by)) = (&upper, &lower)
            && (d == "d" || d == "partial")
            && by.starts_with('d')
        {
            return Some(Node::Opaque(format!("Derivative({by})")));
        }
        Some(Node::Divide(boxed(upper), boxed(lower)))
    }
}

/// Returns the product of adjacent factors. An `x` between two factors without unknowns is a multiplication sign.
fn multiply_all(factors: Vec<Node>) -> Option<Node> {
    let is_sign = |at: usize| {
        at > 0
            && matches!(factors.get(at), Some(Node::Symbol(name)) if name == "x")
            && factors.get(at - 1).is_some_and(|left| !left.has_symbol())
            && factors.get(at + 1).is_some_and(|right| !right.has_symbol())
    };
    let signs: Vec<bool> = (0..factors.len()).map(is_sign).collect();
    let remaining = factors.into_iter().zip(signs).filter(|(_, is_sign)| !is_sign).map(|(factor, _)| factor);
    remaining.rev().reduce(|right, left| Node::Multiply(boxed(left), boxed(right)))
}
