//! Computes the number that a LaTeX expression represents.

use std::hash::{DefaultHasher, Hash, Hasher};

use num_traits::ToPrimitive;

use super::node::{Function, Node};
use crate::scorers::boxed::number::Number;

/// Number of times that an expression is evaluated with different values for its unknowns.
const PROBES: u64 = 3;

/// Returns the value of an expression that doesn't depend on an unknown.
///
/// The official parser simplifies the expression symbolically. If all unknowns cancel, the expression has the same
/// value for all of their values, so evaluating it at a few points gives the same answer.
pub(super) fn constant(node: &Node) -> Option<Number> {
    if is_opaque(node) {
        return None;
    }
    let first = value(node, 0);
    if !has_unknown(node) {
        return Some(first);
    }
    let (re, im) = first.parts();
    if !first.is_finite() || im != 0.0 {
        return None;
    }
    let same = (1..PROBES).all(|probe| {
        let (other, other_im) = value(node, probe).parts();
        (other - re).abs() <= 1e-11 * re.abs().max(1.0) && other_im == 0.0
    });
    if !same {
        return None;
    }
    let nearest = re.round();
    let is_whole = (re - nearest).abs() < 1e-9 && nearest.abs() < 1e15;
    Some(if is_whole { nearest.to_i64().map_or(first, Number::from) } else { first })
}

fn is_opaque(node: &Node) -> bool {
    match node {
        Node::Opaque(_) => true,
        Node::Number(_) | Node::Symbol(_) => false,
        Node::Add(a, b)
        | Node::Subtract(a, b)
        | Node::Multiply(a, b)
        | Node::Divide(a, b)
        | Node::Power(a, b) => is_opaque(a) || is_opaque(b),
        Node::Negate(a) => is_opaque(a),
        Node::Function(_, nodes) | Node::Call(_, nodes) => nodes.iter().any(is_opaque),
    }
}

fn has_unknown(node: &Node) -> bool {
    match node {
        Node::Symbol(name) => !matches!(name.as_str(), "pi" | "e" | "i" | "I" | "infty"),
        Node::Number(_) => false,
        Node::Opaque(_) | Node::Call(..) => true,
        Node::Add(a, b)
        | Node::Subtract(a, b)
        | Node::Multiply(a, b)
        | Node::Divide(a, b)
        | Node::Power(a, b) => has_unknown(a) || has_unknown(b),
        Node::Negate(a) => has_unknown(a),
        Node::Function(_, nodes) => nodes.iter().any(has_unknown),
    }
}

fn value(node: &Node, probe: u64) -> Number {
    match node {
        Node::Number(number) => number.clone(),
        Node::Symbol(name) => match name.as_str() {
            "pi" => Number::from(std::f64::consts::PI),
            "e" => Number::from(std::f64::consts::E),
            "i" | "I" => Number::IMAGINARY_UNIT,
            "infty" => Number::INFINITE,
            _ => stand_in(name, &[], probe),
        },
        Node::Add(a, b) => value(a, probe).plus(&value(b, probe)),
        Node::Subtract(a, b) => value(a, probe).minus(&value(b, probe)),
        Node::Multiply(a, b) => value(a, probe).times(&value(b, probe)),
        Node::Divide(a, b) => value(a, probe).divided_by(&value(b, probe)),
        Node::Power(a, b) => value(a, probe).power(&value(b, probe)),
        Node::Negate(a) => value(a, probe).negated(),
        Node::Call(name, nodes) => {
            let arguments: Vec<Number> = nodes.iter().map(|node| value(node, probe)).collect();
            stand_in(name, &arguments, probe)
        }
        Node::Opaque(_) => Number::UNDEFINED,
        Node::Function(function, nodes) => {
            let arguments: Vec<Number> = nodes.iter().map(|node| value(node, probe)).collect();
            apply(*function, &arguments)
        }
    }
}

fn apply(function: Function, arguments: &[Number]) -> Number {
    match (function, arguments) {
        (Function::Absolute, [x]) => x.absolute(),
        (Function::Floor, [x]) => x.floor(),
        (Function::Ceiling, [x]) => x.ceiling(),
        (Function::Factorial, [x]) => x.factorial(),
        (Function::Binomial, [n, k]) => n.binomial(k),
        (Function::Root, [x, degree]) => x.power(&Number::from(1).divided_by(degree)),
        (Function::Logarithm, [x, base]) => x.logarithm(base),
        (Function::Conjugate, [x]) => match x {
            Number::Approximate { re, im } => Number::Approximate { re: *re, im: -im },
            exact => exact.clone(),
        },
        (Function::Real(function, _), [x]) => x.map_real(function),
        _ => Number::UNDEFINED,
    }
}

/// Returns a number between 1 and 2 for an unknown, always the same for the same name and probe.
fn stand_in(name: &str, arguments: &[Number], probe: u64) -> Number {
    let mut hasher = DefaultHasher::new();
    (name, probe).hash(&mut hasher);
    for argument in arguments {
        let (re, im) = argument.parts();
        (re.to_bits(), im.to_bits()).hash(&mut hasher);
    }
    #[allow(clippy::cast_precision_loss)] // 32 bits
    let fraction = (hasher.finish() >> 32) as f64 / 4_294_967_296.0;
    Number::from(1.0 + fraction)
}
