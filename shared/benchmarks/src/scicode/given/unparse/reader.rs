//! State of the reader, and its result.

use std::ops::Range;

use super::token::{Kind, Token};

/// Output line. String literals in it may contain line ends.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
}

/// Function or class.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// True for an `async` function, which the official program ignores.
    pub(super) is_async: bool,
    /// Depth in the syntax tree.
    pub(super) depth: usize,
    pub(super) indent: usize,
    /// Range of its lines.
    pub(super) lines: Range<usize>,
}

/// Module that was read.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) lines: Vec<Line>,
    /// Definitions in the order in which they begin.
    pub(super) definitions: Vec<Definition>,
}

/// State of the reader.
pub(super) struct Reader<'a> {
    pub(super) tokens: &'a [Token<'a>],
    pub(super) at: usize,
    pub(super) module: Module,
    pub(super) indent: usize,
    /// Depth of the current statements in the syntax tree.
    pub(super) tree_depth: usize,
    /// Number of statements in the last block.
    pub(super) statements: usize,
    /// Nesting depth of expressions.
    pub(super) depth: usize,
    /// True while the target of a loop is read, which `in` ends.
    pub(super) is_target: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Self {
        let module = Module::default();
        Self { tokens, at: 0, module, indent: 0, tree_depth: 1, statements: 0, depth: 0, is_target: false }
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    fn matches(token: Option<Token<'_>>, text: &str) -> bool {
        token.is_some_and(|token| token.text == text && matches!(token.kind, Kind::Name | Kind::Operator))
    }

    /// Returns true if the next token is this operator or keyword.
    pub(super) fn next_is(&self, text: &str) -> bool {
        Self::matches(self.peek(), text)
    }

    /// Returns true if the token after the next one is this operator or keyword.
    pub(super) fn second_is(&self, text: &str) -> bool {
        Self::matches(self.tokens.get(self.at + 1).copied(), text)
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let is = self.next_is(text);
        self.at += usize::from(is);
        is
    }

    pub(super) fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    pub(super) fn name(&mut self) -> Option<&'a str> {
        self.next().filter(|token| token.kind == Kind::Name).map(|token| token.text)
    }

    pub(super) fn take_kind(&mut self, kind: Kind) -> bool {
        let is = self.peek().is_some_and(|token| token.kind == kind);
        self.at += usize::from(is);
        is
    }

    pub(super) fn write(&mut self, text: impl Into<String>) {
        self.module.lines.push(Line { indent: self.indent, text: text.into() });
    }
}
