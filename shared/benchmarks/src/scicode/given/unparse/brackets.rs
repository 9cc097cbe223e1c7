//! Parts of expressions: names, literals, and contents of brackets.

use super::expression::{Expr, join_tuple, level};
use super::literal;
use super::reader::Reader;
use super::token::Kind;

impl Reader<'_> {
    /// Reads call arguments up to the closing parenthesis. Keyword arguments are written last.
    pub(super) fn arguments(&mut self) -> Option<String> {
        let (mut positional, mut keyword) = (Vec::new(), Vec::new());
        while !self.take(")") {
            if self.take("**") {
                keyword.push(format!("**{}", self.expression()?.plain()));
            } else if self.peek()?.kind == Kind::Name && self.second_is("=") {
                let name = self.name()?;
                self.expect("=")?;
                keyword.push(format!("{name}={}", self.expression()?.plain()));
            } else if self.take("*") {
                positional.push(format!("*{}", self.expression()?.at_level(level::BIT_OR)));
            } else {
                let value = self.named()?;
                let text = value.plain();
                positional.push(match self.comprehension_clauses()? {
                    None => text,
                    Some(loops) => format!("({text}{loops})"),
                });
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        positional.append(&mut keyword);
        Some(positional.join(", "))
    }

    pub(super) fn subscript(&mut self) -> Option<String> {
        let mut parts = Vec::new();
        let mut is_tuple = false;
        let mut only = None;
        while !self.take("]") {
            let part = self.slice()?;
            only = Some(part.clone());
            parts.push(part.plain());
            if self.take(",") {
                is_tuple = true;
            } else {
                self.expect("]")?;
                break;
            }
        }
        match only {
            Some(only) if !is_tuple => Some(only.parts.as_deref().map_or_else(|| only.plain(), join_tuple)),
            _ => Some(join_tuple(&parts)),
        }
    }

    fn slice(&mut self) -> Option<Expr> {
        let ends = |reader: &Self| reader.next_is(":") || reader.next_is(",") || reader.next_is("]");
        let mut text = String::new();
        if !ends(self) {
            let first = self.element()?;
            if !self.next_is(":") {
                return Some(first);
            }
            text = first.plain();
        }
        self.expect(":")?;
        text.push(':');
        if !ends(self) {
            text.push_str(&self.expression()?.plain());
        }
        if self.take(":") && !ends(self) {
            text.push(':');
            text.push_str(&self.expression()?.plain());
        }
        Some(Expr::atom(text))
    }

    /// Sequence of comprehension clauses `for … in … if …`.
    pub(super) fn comprehension_clauses(&mut self) -> Option<Option<String>> {
        let mut text = String::new();
        loop {
            let is_async = self.next_is("async") && self.second_is("for");
            if is_async {
                self.take("async");
            }
            if !self.take("for") {
                break;
            }
            let target = self.target()?.at_level(level::TUPLE);
            self.expect("in")?;
            let iterable = self.boolean_chain("or", level::OR)?.at_level(level::OR);
            text.push_str(if is_async { " async for " } else { " for " });
            text.push_str(&format!("{target} in {iterable}"));
            while self.take("if") {
                let test = self.boolean_chain("or", level::OR)?.at_level(level::OR);
                text.push_str(&format!(" if {test}"));
            }
        }
        Some(Some(text).filter(|text| !text.is_empty()))
    }

    /// Target of a loop.
    pub(super) fn target(&mut self) -> Option<Expr> {
        let outer = std::mem::replace(&mut self.is_target, true);
        let found = self.expressions();
        self.is_target = outer;
        found
    }

    /// Name, literal, or expression in brackets.
    pub(super) fn atom(&mut self) -> Option<Expr> {
        let token = self.next()?;
        match token.kind {
            Kind::Number => {
                let (text, is_whole) = literal::number(token.text)?;
                Some(Expr { is_whole, ..Expr::atom(text) })
            }
            Kind::Text => self.text(token.text),
            Kind::Name => match token.text {
                "True" | "False" => Some(Expr { is_whole: true, ..Expr::atom(token.text) }),
                "if" | "else" | "for" | "in" | "is" | "and" | "or" | "not" | "lambda" | "def" | "class"
                | "return" | "import" | "from" | "as" | "while" | "try" | "except" | "with" => None,
                name => Some(Expr::atom(name)),
            },
            Kind::Operator => {
                // Inside brackets, `in` is an operator again.
                let outer = std::mem::replace(&mut self.is_target, false);
                let found = match token.text {
                    "(" => self.parenthesized(),
                    "[" => self.list_display(),
                    "{" => self.brace_display(),
                    "..." => Some(Expr::atom("...")),
                    _ => None,
                };
                self.is_target = outer;
                found
            }
            Kind::Newline | Kind::Indent | Kind::Dedent => None,
        }
    }

    /// Joins adjacent string literals.
    fn text(&mut self, first: &str) -> Option<Expr> {
        let Some(mut whole) = literal::text(first) else { return self.formatted(first) };
        while let Some(next) = self.peek().filter(|next| next.kind == Kind::Text) {
            let Some(more) = literal::text(next.text) else { return self.formatted(&literal::repr(&whole)) };
            if more.is_bytes != whole.is_bytes {
                return None;
            }
            whole.value.push_str(&more.value);
            self.next();
        }
        let literal = (!whole.is_bytes).then(|| whole.clone());
        Some(Expr { literal, ..Expr::atom(literal::repr(&whole)) })
    }

    /// Formatted literals, and literals adjacent to them, stay unchanged except for the quotes of simple ones.
    fn formatted(&mut self, first: &str) -> Option<Expr> {
        let mut parts = vec![literal::requote(first)];
        while let Some(next) = self.peek().filter(|next| next.kind == Kind::Text) {
            parts.push(literal::requote(next.text));
            self.next();
        }
        Some(Expr::atom(parts.join(" ")))
    }

    fn parenthesized(&mut self) -> Option<Expr> {
        if self.take(")") {
            return Some(Expr::tuple(Vec::new()));
        }
        let first = self.expressions()?;
        let found = match self.comprehension_clauses()? {
            None => first,
            Some(loops) => Expr::atom(format!("({}{loops})", first.plain())),
        };
        self.expect(")")?;
        Some(found)
    }

    fn list_display(&mut self) -> Option<Expr> {
        let mut parts = Vec::new();
        while !self.take("]") {
            let part = self.element()?.plain();
            if let Some(loops) = self.comprehension_clauses()? {
                self.expect("]")?;
                return Some(Expr::atom(format!("[{part}{loops}]")));
            }
            parts.push(part);
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        Some(Expr::atom(format!("[{}]", parts.join(", "))))
    }

    fn brace_display(&mut self) -> Option<Expr> {
        let mut parts = Vec::new();
        while !self.take("}") {
            let part = if self.take("**") {
                format!("**{}", self.binary(level::BIT_OR)?.at_level(level::BIT_OR))
            } else {
                let key = self.element()?.plain();
                match self.take(":") {
                    true => format!("{key}: {}", self.expression()?.plain()),
                    false => key,
                }
            };
            if let Some(loops) = self.comprehension_clauses()? {
                self.expect("}")?;
                return Some(Expr::atom(format!("{{{part}{loops}}}")));
            }
            parts.push(part);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Some(Expr::atom(format!("{{{}}}", parts.join(", "))))
    }
}
