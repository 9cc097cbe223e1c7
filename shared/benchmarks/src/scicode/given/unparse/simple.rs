//! Statements without a block.

use super::expression::{Expr, level};
use super::literal;
use super::reader::Reader;
use super::token::Kind;

impl Reader<'_> {
    /// A statement without a block.
    pub(super) fn simple(&mut self, documents: bool) -> Option<()> {
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
                    format!("del {}", self.several()?)
                }
                "assert" => {
                    self.take("assert");
                    format!("assert {}", self.several()?)
                }
                "global" | "nonlocal" => format!("{} {}", self.name()?, self.several()?),
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
                    format!("import {}", self.imported()?)
                }
                "from" => self.imported_from()?,
                _ => return self.assigned(documents),
            };
            self.write(text);
            return Some(());
        }
        self.assigned(documents)
    }

    fn ends_statement(&self) -> bool {
        self.is(";") || self.peek().is_none_or(|token| token.kind == Kind::Newline)
    }

    fn several(&mut self) -> Option<String> {
        let mut parts = vec![self.expression()?.plain()];
        while self.take(",") {
            if self.ends_statement() {
                break;
            }
            parts.push(self.expression()?.plain());
        }
        Some(parts.join(", "))
    }

    fn imported(&mut self) -> Option<String> {
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
            if !self.take(",") || self.is(")") {
                return Some(parts.join(", "));
            }
        }
    }

    fn imported_from(&mut self) -> Option<String> {
        self.expect("from")?;
        let mut module = String::new();
        while !self.is("import") {
            let part = self.next()?;
            module.push_str(part.text);
        }
        self.expect("import")?;
        let in_parentheses = self.take("(");
        let names = self.imported()?;
        if in_parentheses {
            self.expect(")")?;
        }
        Some(format!("from {module} import {names}"))
    }

    /// An expression, or an assignment of any kind.
    fn assigned(&mut self, documents: bool) -> Option<()> {
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
        if !self.is("=") {
            let text = match first.literal.as_ref().filter(|_| documents) {
                Some(text) => literal::documentation(text),
                None => first.at(level::YIELD),
            };
            self.write(text);
            return Some(());
        }
        let mut parts: Vec<Expr> = vec![first];
        while self.take("=") {
            parts.push(self.expressions()?);
        }
        let value = parts.pop()?.plain();
        let targets = parts.iter().map(|target| format!("{} = ", target.at(level::TUPLE)));
        let text = format!("{}{value}", targets.collect::<String>());
        self.write(text);
        Some(())
    }
}
