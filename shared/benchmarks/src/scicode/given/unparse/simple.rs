//! Statements without a block.

use super::expression::{Expr, level};
use super::literal;
use super::reader::Reader;
use super::token::Kind;

impl Reader<'_> {
    /// Reads a statement without a block.
    pub(super) fn simple_statement(&mut self, documents: bool) -> Option<()> {
        let first = self.peek()?;
        if first.kind == Kind::Name {
            let text = match first.text {
                "pass" | "break" | "continue" => self.name()?.to_owned(),
                "return" => {
                    self.take("return");
                    match self.ends_statement() {
                        true => "return".to_owned(),
                        false => format!("return {}", self.expressions()?.plain()),
                    }
                }
                "del" => {
                    self.take("del");
                    format!("del {}", self.expression_list()?)
                }
                "assert" => {
                    self.take("assert");
                    format!("assert {}", self.expression_list()?)
                }
                "global" | "nonlocal" => format!("{} {}", self.name()?, self.expression_list()?),
                "raise" => {
                    self.take("raise");
                    let mut text = "raise".to_owned();
                    if !self.ends_statement() {
                        text = format!("{text} {}", self.expression()?.plain());
                        if self.take("from") {
                            text = format!("{text} from {}", self.expression()?.plain());
                        }
                    }
                    text
                }
                "import" => {
                    self.take("import");
                    format!("import {}", self.import_names()?)
                }
                "from" => self.import_from()?,
                _ => return self.assignment(documents),
            };
            self.write(text);
            return Some(());
        }
        self.assignment(documents)
    }

    fn ends_statement(&self) -> bool {
        self.next_is(";") || self.peek().is_none_or(|token| token.kind == Kind::Newline)
    }

    fn expression_list(&mut self) -> Option<String> {
        let mut parts = vec![self.expression()?.plain()];
        while self.take(",") {
            if self.ends_statement() {
                break;
            }
            parts.push(self.expression()?.plain());
        }
        Some(parts.join(", "))
    }

    fn import_names(&mut self) -> Option<String> {
        let mut parts = Vec::new();
        loop {
            let mut part = if self.take("*") { "*".to_owned() } else { self.name()?.to_owned() };
            while self.take(".") {
                part = format!("{part}.{}", self.name()?);
            }
            if self.take("as") {
                part = format!("{part} as {}", self.name()?);
            }
            parts.push(part);
            if !self.take(",") || self.next_is(")") {
                return Some(parts.join(", "));
            }
        }
    }

    fn import_from(&mut self) -> Option<String> {
        self.expect("from")?;
        let mut module = String::new();
        while !self.next_is("import") {
            let part = self.next()?;
            module.push_str(part.text);
        }
        self.expect("import")?;
        let in_parentheses = self.take("(");
        let names = self.import_names()?;
        if in_parentheses {
            self.expect(")")?;
        }
        Some(format!("from {module} import {names}"))
    }

    /// Reads an expression, or an assignment of any kind.
    fn assignment(&mut self, documents: bool) -> Option<()> {
        let first = self.expressions()?;
        if self.take(":") {
            let annotation = self.expression()?.plain();
            let mut text = format!("{}: {annotation}", first.plain());
            if self.take("=") {
                text = format!("{text} = {}", self.expressions()?.plain());
            }
            self.write(text);
            return Some(());
        }
        let operators = ["+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**="];
        if let Some(operator) = operators.into_iter().find(|operator| self.take(operator)) {
            let right = self.expressions()?.plain();
            self.write(format!("{} {operator} {right}", first.plain()));
            return Some(());
        }
        if !self.next_is("=") {
            let text = match first.literal.as_ref().filter(|_| documents) {
                Some(text) => literal::documentation(text),
                None => first.at_level(level::YIELD),
            };
            self.write(text);
            return Some(());
        }
        let mut parts: Vec<Expr> = vec![first];
        while self.take("=") {
            parts.push(self.expressions()?);
        }
        let value = parts.pop()?.plain();
        let targets = parts.iter().map(|target| format!("{} = ", target.at_level(level::TUPLE)));
        let text = format!("{}{value}", targets.collect::<String>());
        self.write(text);
        Some(())
    }
}
