//! Syntax tree of a LaTeX expression.

use std::collections::BTreeMap;

use crate::scorers::boxed::number::Number;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Number(Number),
    Symbol(String),
    Add(Box<Node>, Box<Node>),
    Subtract(Box<Node>, Box<Node>),
    Multiply(Box<Node>, Box<Node>),
    Divide(Box<Node>, Box<Node>),
    Power(Box<Node>, Box<Node>),
    Negate(Box<Node>),
    /// Known function with its arguments.
    Function(Function, Vec<Node>),
    /// Unknown function with its arguments.
    Call(String, Vec<Node>),
    /// Text of a relation, derivative, integral or other construct without a value.
    Opaque(String),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Function {
    Absolute,
    Floor,
    Ceiling,
    Factorial,
    Binomial,
    /// Root of a value, with its degree.
    Root,
    /// Logarithm of a value, with its base.
    Logarithm,
    Conjugate,
    /// Function of one real number, with its name.
    Real(fn(f64) -> f64, &'static str),
}

impl Function {
    const fn name(self) -> &'static str {
        match self {
            Self::Absolute => "Abs",
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Factorial => "factorial",
            Self::Binomial => "binomial",
            Self::Root => "root",
            Self::Logarithm => "log",
            Self::Conjugate => "conjugate",
            Self::Real(_, name) => name,
        }
    }
}

pub(super) fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

impl Node {
    /// Returns the text of the expression.
    pub(super) fn text(&self) -> String {
        if let Some(text) = self.flat_product() {
            return text;
        }
        let list = |nodes: &[Self]| nodes.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Number(number) => number.inner_text(),
            Self::Symbol(name) | Self::Opaque(name) => name.clone(),
            Self::Add(a, b) => format!("{} + {}", a.text(), b.text()),
            Self::Subtract(a, b) => format!("{} - {}", a.text(), b.factor()),
            Self::Multiply(a, b) if a.comes_after(b) => format!("{}*{}", b.factor(), a.factor()),
            Self::Multiply(a, b) => format!("{}*{}", a.factor(), b.factor()),
            Self::Divide(a, b) => match (a.flat_product(), &**b) {
                (Some(a), Self::Number(b)) if *b == Number::from(1) => a,
                (Some(a), Self::Number(b)) => format!("{a}/{}", b.inner_text()),
                (_, Self::Multiply(..)) => format!("{}/({})", a.factor(), b.factor()),
                _ => format!("{}/{}", a.factor(), b.base()),
            },
            Self::Power(a, b) => format!("{}**{}", a.base(), b.base()),
            Self::Negate(a) => format!("-{}", a.factor()),
            Self::Function(Function::Logarithm, nodes) => list(nodes)
                .strip_suffix(", e")
                .map_or_else(|| format!("log({})", list(nodes)), |argument| format!("log({argument}, E)")),
            Self::Function(function, nodes) => format!("{}({})", function.name(), list(nodes)),
            Self::Call(name, nodes) => format!("{name}({})", list(nodes)),
        }
    }

    /// Returns true if SymPy writes this factor after the other one. It sorts names and puts functions last.
    fn comes_after(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Number(_)) => false,
            (Self::Symbol(a), Self::Symbol(b)) => a > b,
            (Self::Function(..), other) => !matches!(other, Self::Function(..) | Self::Call(..)),
            _ => false,
        }
    }

    /// Returns the text of a product that contains a mathematical constant. Substituting the constant makes SymPy sort
    /// the factors: number, constants, then names in order.
    fn flat_product(&self) -> Option<String> {
        let mut names = BTreeMap::new();
        let mut number = Number::from(1);
        let mut rest = vec![self];
        while let Some(node) = rest.pop() {
            match node {
                Self::Multiply(a, b) => rest.extend([&**a, &**b]),
                Self::Number(factor) => number = number.times(factor),
                Self::Symbol(name) => *names.entry(name.as_str()).or_insert(0_u32) += 1,
                Self::Negate(a) => {
                    number = number.negated();
                    rest.push(a);
                }
                _ => return None,
            }
        }
        let mut take = |name| names.remove(name).unwrap_or(0);
        let (e, pi, imaginary) = (take("e"), take("pi"), take("i") + take("I"));
        if e + pi + imaginary == 0 || names.is_empty() {
            return None;
        }
        if imaginary > 0 {
            let sign = if imaginary % 4 > 1 { -1.0 } else { 1.0 };
            number = number.times(&Number::from(sign));
        }
        let power = |name: &str, exponent: u32| match exponent {
            1 => name.to_owned(),
            _ => format!("{name}**{exponent}"),
        };
        let constants = [
            (number != Number::from(1)).then(|| number.inner_text()),
            (e == 1).then(|| "E".to_owned()),
            (pi > 0).then(|| power("pi", pi)),
            (imaginary % 2 == 1).then(|| "I".to_owned()),
        ];
        let names = names.into_iter().map(|(name, exponent)| power(name, exponent));
        let factors =
            constants.into_iter().flatten().chain(names).chain((e > 1).then(|| format!("exp({e})")));
        let text = factors.collect::<Vec<_>>().join("*");
        Some(text.strip_prefix("-1*").map_or(text.clone(), |text| format!("-{text}")))
    }

    fn factor(&self) -> String {
        match self {
            Self::Add(..) | Self::Subtract(..) | Self::Multiply(..) | Self::Divide(..) | Self::Negate(_) => {
                format!("({})", self.text())
            }
            _ => self.text(),
        }
    }

    fn base(&self) -> String {
        if matches!(self, Self::Power(..)) { format!("({})", self.text()) } else { self.factor() }
    }

    /// Returns true if the tree contains anything but numbers.
    pub(super) fn has_symbol(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Symbol(_) | Self::Opaque(_) => true,
            Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b)
            | Self::Power(a, b) => a.has_symbol() || b.has_symbol(),
            Self::Negate(a) => a.has_symbol(),
            Self::Function(_, nodes) | Self::Call(_, nodes) => nodes.iter().any(Self::has_symbol),
        }
    }
}
