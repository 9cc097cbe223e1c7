//! Reads expressions directly into the text that is written.

use super::literal;
use super::reader::Reader;
use super::token::Kind;

/// Precedence levels of expressions, lowest first.
pub(super) mod level {
    pub(in super::super) const NAMED: u8 = 0;
    pub(in super::super) const TUPLE: u8 = 1;
    pub(in super::super) const YIELD: u8 = 2;
    pub(in super::super) const TEST: u8 = 3;
    pub(in super::super) const OR: u8 = 4;
    pub(in super::super) const AND: u8 = 5;
    pub(in super::super) const NOT: u8 = 6;
    pub(in super::super) const COMPARE: u8 = 7;
    pub(in super::super) const BIT_OR: u8 = 8;
    pub(in super::super) const FACTOR: u8 = 14;
    pub(in super::super) const POWER: u8 = 15;
    pub(in super::super) const AWAIT: u8 = 16;
    pub(in super::super) const ATOM: u8 = 17;
}

/// Binary operators, by level from [`level::BIT_OR`] on.
const BINARY: [&[&str]; 6] =
    [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "@", "/", "%", "//"]];

/// Maximum nesting depth of expressions.
const DEPTH_MAX: usize = 60;

/// Expression, as written.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) text: String,
    /// Precedence level of its outermost operator.
    pub(super) level: u8,
    /// Parts of a nonempty tuple.
    pub(super) parts: Option<Vec<String>>,
    /// True for an integer literal, which needs a blank before an attribute's dot.
    pub(super) is_whole: bool,
    /// Value, if the expression is a string literal.
    pub(super) literal: Option<literal::Text>,
}

impl Expr {
    pub(super) fn new(text: impl Into<String>, level: u8) -> Self {
        Self { text: text.into(), level, parts: None, is_whole: false, literal: None }
    }

    pub(super) fn atom(text: impl Into<String>) -> Self {
        Self::new(text, level::ATOM)
    }

    pub(super) fn tuple(parts: Vec<String>) -> Self {
        if parts.is_empty() {
            return Self::atom("()");
        }
        Self { parts: Some(parts.clone()), ..Self::new(join_tuple(&parts), level::TUPLE) }
    }

    /// Returns the text for a context of at least this level, with parentheses if needed.
    pub(super) fn at_level(&self, level: u8) -> String {
        if level > self.level { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Returns the text for most contexts.
    pub(super) fn plain(&self) -> String {
        self.at_level(level::TEST)
    }
}

/// Joins parts with commas. A single part gets a trailing comma.
pub(super) fn join_tuple(parts: &[String]) -> String {
    match parts {
        [only] => format!("{only},"),
        parts => parts.join(", "),
    }
}

impl Reader<'_> {
    /// Reads all expressions up to the rest of the statement or a closing bracket. With a comma they form a tuple.
    pub(super) fn expressions(&mut self) -> Option<Expr> {
        let first = self.element()?;
        if !self.next_is(",") {
            return Some(first);
        }
        let mut parts = vec![first.plain()];
        while self.take(",") {
            if self.ends_expressions() {
                break;
            }
            parts.push(self.element()?.plain());
        }
        Some(Expr::tuple(parts))
    }

    fn ends_expressions(&self) -> bool {
        let Some(next) = self.peek() else { return true };
        match next.kind {
            Kind::Newline => true,
            Kind::Operator => {
                matches!(next.text, ")" | "]" | "}" | ":" | ";" | "=")
                    || next.text.ends_with('=') && next.text.len() > 1
            }
            Kind::Name => matches!(next.text, "in" | "for" | "if" | "else" | "from" | "as"),
            _ => false,
        }
    }

    /// Reads one element of a list: starred, with `:=`, or plain.
    pub(super) fn element(&mut self) -> Option<Expr> {
        if self.take("*") {
            return Some(Expr::atom(format!("*{}", self.binary(level::BIT_OR)?.at_level(level::BIT_OR))));
        }
        self.named()
    }

    pub(super) fn named(&mut self) -> Option<Expr> {
        let value = self.expression()?;
        if self.take(":=") {
            let right = self.expression()?;
            let text = format!("{} := {}", value.at_level(level::ATOM), right.at_level(level::ATOM));
            return Some(Expr::new(text, level::NAMED));
        }
        Some(value)
    }

    pub(super) fn expression(&mut self) -> Option<Expr> {
        self.with_depth_limit(Self::any_expression)
    }

    /// Reads a nested expression, unless the nesting is too deep.
    fn with_depth_limit(&mut self, read: impl FnOnce(&mut Self) -> Option<Expr>) -> Option<Expr> {
        self.depth += 1;
        let found = if self.depth > DEPTH_MAX { None } else { read(self) };
        self.depth -= 1;
        found
    }

    fn any_expression(&mut self) -> Option<Expr> {
        if self.take("yield") {
            return self.yield_expression();
        }
        if self.take("lambda") {
            let parameters = self.parameters(":", false)?;
            let blank = if parameters.is_empty() { "" } else { " " };
            self.expect(":")?;
            let body = self.expression()?.plain();
            return Some(Expr::new(format!("lambda{blank}{parameters}: {body}"), level::TEST));
        }
        let body = self.boolean_chain("or", level::OR)?;
        if !self.take("if") {
            return Some(body);
        }
        let test = self.boolean_chain("or", level::OR)?;
        self.expect("else")?;
        let other = self.expression()?;
        let text =
            format!("{} if {} else {}", body.at_level(level::OR), test.at_level(level::OR), other.plain());
        Some(Expr::new(text, level::TEST))
    }

    fn yield_expression(&mut self) -> Option<Expr> {
        if self.take("from") {
            let value = self.expression()?.at_level(level::ATOM);
            return Some(Expr::new(format!("yield from {value}"), level::YIELD));
        }
        if self.ends_expressions() {
            return Some(Expr::new("yield", level::YIELD));
        }
        let value = self.expressions()?.at_level(level::ATOM);
        Some(Expr::new(format!("yield {value}"), level::YIELD))
    }

    /// Reads a chain of `or` or `and`. As in `ast.unparse`, the required level rises by one with each operand.
    pub(super) fn boolean_chain(&mut self, word: &str, own: u8) -> Option<Expr> {
        let part = |reader: &mut Self| match word {
            "or" => reader.boolean_chain("and", level::AND),
            _ => reader.negation(),
        };
        let first = part(self)?;
        if !self.next_is(word) {
            return Some(first);
        }
        let mut parts = vec![first];
        while self.take(word) {
            parts.push(part(self)?);
        }
        let levels = (own + 1..).map(|level| level.min(level::ATOM));
        let parts: Vec<String> = parts.iter().zip(levels).map(|(part, level)| part.at_level(level)).collect();
        Some(Expr::new(parts.join(&format!(" {word} ")), own))
    }

    fn negation(&mut self) -> Option<Expr> {
        if self.take("not") {
            let operand = self.with_depth_limit(Self::negation)?.at_level(level::NOT);
            return Some(Expr::new(format!("not {operand}"), level::NOT));
        }
        let mut text = String::new();
        let first = self.binary(level::BIT_OR)?;
        while let Some(operator) = self.comparison() {
            if text.is_empty() {
                text = first.at_level(level::BIT_OR);
            }
            let right = self.binary(level::BIT_OR)?.at_level(level::BIT_OR);
            text = format!("{text} {operator} {right}");
        }
        Some(if text.is_empty() { first } else { Expr::new(text, level::COMPARE) })
    }

    fn comparison(&mut self) -> Option<&'static str> {
        for operator in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.take(operator) {
                return Some(operator);
            }
        }
        if self.take("is") {
            return Some(if self.take("not") { "is not" } else { "is" });
        }
        if self.next_is("not") && self.second_is("in") {
            self.take("not");
            self.take("in");
            return Some("not in");
        }
        (!self.is_target && self.take("in")).then_some("in")
    }

    /// Reads left-associative operators from a level on.
    pub(super) fn binary(&mut self, own: u8) -> Option<Expr> {
        let operators: &[&str] =
            match own.checked_sub(level::BIT_OR).and_then(|at| BINARY.get(usize::from(at))) {
                Some(operators) => operators,
                None => return self.with_depth_limit(Self::factor),
            };
        let mut left = self.binary(own + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            let right = self.binary(own + 1)?.at_level(own + 1);
            left = Expr::new(format!("{} {operator} {right}", left.at_level(own)), own);
        }
        Some(left)
    }

    fn factor(&mut self) -> Option<Expr> {
        for operator in ["-", "+", "~"] {
            if self.take(operator) {
                let operand = self.with_depth_limit(Self::factor)?.at_level(level::FACTOR);
                return Some(Expr::new(format!("{operator}{operand}"), level::FACTOR));
            }
        }
        let base = match self.take("await") {
            true => Expr::new(format!("await {}", self.primary()?.at_level(level::ATOM)), level::AWAIT),
            false => self.primary()?,
        };
        if self.take("**") {
            let exponent = self.with_depth_limit(Self::factor)?.at_level(level::POWER);
            return Some(Expr::new(format!("{} ** {exponent}", base.at_level(level::AWAIT)), level::POWER));
        }
        Some(base)
    }

    fn primary(&mut self) -> Option<Expr> {
        let mut value = self.atom()?;
        loop {
            let whole = if value.is_whole { " " } else { "" };
            let text = value.at_level(level::ATOM);
            value = if self.take(".") {
                Expr::atom(format!("{text}{whole}.{}", self.name()?))
            } else if self.take("(") {
                Expr::atom(format!("{text}({})", self.arguments()?))
            } else if self.take("[") {
                Expr::atom(format!("{text}[{}]", self.subscript()?))
            } else {
                return Some(value);
            };
        }
    }
}
