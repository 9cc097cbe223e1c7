//! Where the reading of a text stands, and what comes of it.

use std::ops::Range;

use super::token::{Kind, Token};

/// A line as it is written; a text literal may have line ends of its own.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
}

/// A function or a class.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// Of an `async` function, which the official program does not look for.
    pub(super) is_async: bool,
    /// How far down in the tree it is.
    pub(super) depth: usize,
    pub(super) indent: usize,
    /// Its lines.
    pub(super) lines: Range<usize>,
}

/// A text, read.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) lines: Vec<Line>,
    /// In the order in which they begin.
    pub(super) definitions: Vec<Definition>,
}

/// Where reading stands.
pub(super) struct Reader<'a> {
    pub(super) tokens: &'a [Token<'a>],
    pub(super) at: usize,
    pub(super) module: Module,
    pub(super) indent: usize,
    /// How far down in the tree the statements are.
    pub(super) tree: usize,
    /// How many statements the last block had.
    pub(super) statements: usize,
    /// Expressions within expressions.
    pub(super) depth: usize,
    /// Whether the target of a loop is read: `in` ends it.
    pub(super) is_target: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Self {
        let module = Module::default();
        Self { tokens, at: 0, module, indent: 0, tree: 1, statements: 0, depth: 0, is_target: false }
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

    /// Whether that operator or keyword comes next.
    pub(super) fn is(&self, text: &str) -> bool {
        Self::matches(self.peek(), text)
    }

    /// Whether it comes after the next one.
    pub(super) fn is_after(&self, text: &str) -> bool {
        Self::matches(self.tokens.get(self.at + 1).copied(), text)
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let is = self.is(text);
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
