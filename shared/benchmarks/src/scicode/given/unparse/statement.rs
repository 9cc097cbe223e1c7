//! Reads statements into lines.

use super::expression::level;
use super::reader::{Definition, Module, Reader};
use super::token::{Kind, Token};

/// Maximum nesting depth of blocks.
const INDENT_MAX: usize = 50;

impl<'a> Reader<'a> {
    /// Reads a whole text; `None` if it is not Python or has unsupported syntax.
    pub(super) fn module(tokens: &'a [Token<'a>]) -> Option<Module> {
        let mut reader = Self::new(tokens);
        while reader.peek().is_some() {
            reader.statement(false)?;
        }
        Some(reader.module)
    }

    /// Reads one statement, or several on a line. If `documents` is true, a lone string literal is a docstring.
    fn statement(&mut self, documents: bool) -> Option<()> {
        let first = self.peek()?;
        if first.kind == Kind::Name || first.text == "@" {
            match first.text {
                "@" | "def" | "class" | "async" => return self.definition(),
                "if" | "while" => return self.if_or_while(),
                "for" => return self.for_loop(""),
                "with" => return self.with_block(""),
                "try" => return self.try_block(),
                "match" if self.is_match() => return None,
                _ => {}
            }
        }
        let mut documents = documents;
        loop {
            self.simple_statement(documents)?;
            documents = false;
            let more = self.take(";");
            if self.take_kind(Kind::Newline) {
                return Some(());
            }
            if !more {
                return None;
            }
        }
    }

    /// Returns true if `match` begins a match statement: otherwise an operator would follow it.
    fn is_match(&self) -> bool {
        self.tokens
            .get(self.at + 1)
            .is_some_and(|next| matches!(next.kind, Kind::Name | Kind::Number | Kind::Text))
    }

    /// Reads `:` and a block. `documents` has the same meaning as for a statement.
    fn block(&mut self, documents: bool) -> Option<()> {
        self.expect(":")?;
        self.indent += 1;
        self.tree_depth += 1;
        if self.indent > INDENT_MAX {
            return None;
        }
        if self.take_kind(Kind::Newline) {
            if !self.take_kind(Kind::Indent) {
                return None;
            }
            let mut statements = 0;
            while !self.take_kind(Kind::Dedent) {
                self.statement(documents && statements == 0)?;
                statements += 1;
            }
            self.statements = statements;
        } else {
            self.statement(documents)?;
            self.statements = 1;
        }
        self.indent -= 1;
        self.tree_depth -= 1;
        Some(())
    }

    fn definition(&mut self) -> Option<()> {
        if self.next_is("async") && !self.second_is("def") {
            self.take("async");
            return match self.peek()?.text {
                "for" => self.for_loop("async "),
                "with" => self.with_block("async "),
                _ => None,
            };
        }
        // A blank line precedes each definition except at the very start.
        if !self.module.lines.is_empty() {
            self.write("");
        }
        let start = self.module.lines.len();
        while self.take("@") {
            let decorator = self.named()?.plain();
            self.write(format!("@{decorator}"));
            self.take_kind(Kind::Newline).then_some(())?;
        }
        let is_async = self.take("async");
        let name;
        if self.take("class") {
            name = self.name()?;
            let bases = if self.take("(") { self.arguments()? } else { String::new() };
            self.write(if bases.is_empty() {
                format!("class {name}:")
            } else {
                format!("class {name}({bases}):")
            });
        } else {
            self.expect("def")?;
            name = self.name()?;
            self.expect("(")?;
            let parameters = self.parameters(")", true)?;
            self.expect(")")?;
            let returns = match self.take("->") {
                true => format!(" -> {}", self.expression()?.plain()),
                false => String::new(),
            };
            let word = if is_async { "async def" } else { "def" };
            self.write(format!("{word} {name}({parameters}){returns}:"));
        }
        let at = self.module.definitions.len();
        self.module.definitions.push(Definition {
            name: name.to_owned(),
            is_async,
            depth: self.tree_depth,
            indent: self.indent,
            lines: start..start,
        });
        self.block(true)?;
        self.module.definitions.get_mut(at)?.lines.end = self.module.lines.len();
        Some(())
    }

    /// Reads the parameters of a function, up to the token that ends them.
    pub(super) fn parameters(&mut self, end: &str, annotated: bool) -> Option<String> {
        let mut parts = Vec::new();
        while !self.next_is(end) {
            if self.take("/") {
                parts.push("/".to_owned());
            } else if self.next_is("*") && self.second_is(",") {
                self.take("*");
                parts.push("*".to_owned());
            } else {
                let stars = ["**", "*"].into_iter().find(|stars| self.take(stars)).unwrap_or("");
                let mut part = format!("{stars}{}", self.name()?);
                if annotated && self.take(":") {
                    part = format!("{part}: {}", self.expression()?.plain());
                }
                if self.take("=") {
                    part = format!("{part}={}", self.expression()?.plain());
                }
                parts.push(part);
            }
            if !self.take(",") {
                break;
            }
        }
        Some(parts.join(", "))
    }

    fn if_or_while(&mut self) -> Option<()> {
        let word = self.name()?;
        let test = self.named()?.plain();
        self.write(format!("{word} {test}:"));
        self.block(false)?;
        if word == "while" {
            return self.else_block();
        }
        // An `elif` is an `if` inside an `else`, each one level deeper in the tree.
        let tree_depth = self.tree_depth;
        while self.take("elif") {
            let test = self.named()?.plain();
            self.write(format!("elif {test}:"));
            self.tree_depth += 1;
            self.block(false)?;
        }
        let at = self.module.lines.len();
        let holds_if = self.next_is("else") && self.begins_with_if();
        self.else_block()?;
        if holds_if && self.statements == 1 {
            self.join_if(at);
        }
        self.tree_depth = tree_depth;
        Some(())
    }

    /// Returns true if the block of an `else` begins with an `if`.
    fn begins_with_if(&self) -> bool {
        let block = self.tokens.get(self.at + 1..).unwrap_or_default();
        matches!(block, [colon, newline, indent, first, ..]
            if colon.text == ":" && newline.kind == Kind::Newline && indent.kind == Kind::Indent
                && first.kind == Kind::Name && first.text == "if")
    }

    /// Merges the `else` in a line and the `if` after it into an `elif`.
    fn join_if(&mut self, at: usize) {
        self.module.lines.remove(at);
        for line in self.module.lines.iter_mut().skip(at) {
            line.indent = line.indent.saturating_sub(1);
        }
        if let Some(line) = self.module.lines.get_mut(at) {
            line.text.insert_str(0, "el");
        }
        for found in self.module.definitions.iter_mut().filter(|found| found.lines.start > at) {
            found.lines = found.lines.start - 1..found.lines.end.saturating_sub(1);
            found.indent = found.indent.saturating_sub(1);
        }
    }

    fn else_block(&mut self) -> Option<()> {
        if self.take("else") {
            self.write("else:");
            self.block(false)?;
        }
        Some(())
    }

    fn for_loop(&mut self, prefix: &str) -> Option<()> {
        self.expect("for")?;
        let target = self.target()?.at_level(level::TUPLE);
        self.expect("in")?;
        let iterable = self.expressions()?.plain();
        self.write(format!("{prefix}for {target} in {iterable}:"));
        self.block(false)?;
        self.else_block()
    }

    fn with_block(&mut self, prefix: &str) -> Option<()> {
        self.expect("with")?;
        if self.next_is("(") {
            // A single pass can't tell parentheses around all items from those of an expression.
            return None;
        }
        let mut parts = Vec::new();
        loop {
            let mut part = self.expression()?.plain();
            if self.take("as") {
                part = format!("{part} as {}", self.target_of_with()?);
            }
            parts.push(part);
            if !self.take(",") {
                break;
            }
        }
        self.write(format!("{prefix}with {}:", parts.join(", ")));
        self.block(false)
    }

    fn target_of_with(&mut self) -> Option<String> {
        Some(self.expression()?.plain())
    }

    fn try_block(&mut self) -> Option<()> {
        self.expect("try")?;
        self.write("try:");
        self.block(false)?;
        while self.take("except") {
            if self.next_is("*") {
                return None;
            }
            let mut text = "except".to_owned();
            if !self.next_is(":") {
                text = format!("{text} {}", self.expression()?.plain());
                if self.take("as") {
                    text = format!("{text} as {}", self.name()?);
                }
            }
            self.write(format!("{text}:"));
            // The handler is a tree node of its own.
            self.tree_depth += 1;
            self.block(false)?;
            self.tree_depth -= 1;
        }
        self.else_block()?;
        if self.take("finally") {
            self.write("finally:");
            self.block(false)?;
        }
        Some(())
    }
}
