//! Reads the paths and modules that a source file names, from its tokens.

use super::tokens::{Token, tokens};

/// A `mod name;` item, with its `#[path]` if it has one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModuleDeclaration {
    pub(super) name: String,
    pub(super) path: Option<String>,
}

/// Relevant parts of a file, without tests.
#[derive(Debug, Default)]
pub(super) struct SourceParts {
    pub(super) declared: Vec<ModuleDeclaration>,
    /// Paths from the crate's root, written with `crate` or with enough `super`.
    pub(super) paths: Vec<Vec<String>>,
    /// Paths of `use` items as written. A renamed one ends with its new name.
    pub(super) imported: Vec<Vec<String>>,
}

impl SourceParts {
    /// Parses the source of a module at this depth below the crate's root.
    pub(super) fn read(source: &str, depth: usize) -> Self {
        let mut found = Self::default();
        found.walk(&tokens(source), depth);
        found
    }

    fn walk(&mut self, tokens: &[Token], depth: usize) {
        let (mut at, mut path_attribute) = (0, None);
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at..];
            if let Some(attribute) = attribute(rest) {
                if is_for_tests(attribute) {
                    at += 2 + item_length(&rest[2..]);
                    continue;
                }
                path_attribute = path_attribute.or(named_path(attribute));
                at += 2;
                continue;
            }
            match token {
                Token::Word(word) if word == "mod" => {
                    let Some(Token::Word(name)) = rest.get(1) else { panic!("`mod` without a name") };
                    if let Some(Token::Group(_, body)) = rest.get(2) {
                        self.walk(body, depth + 1);
                    } else {
                        self.declared
                            .push(ModuleDeclaration { name: name.to_string(), path: path_attribute.take() });
                    }
                    at += 3;
                }
                Token::Word(word) if word == "use" => {
                    tree(&rest[1..], &[], &mut self.imported);
                    at += 1;
                }
                Token::Word(word) if word == "crate" && is_path_separator(&rest[1..]) => {
                    at += 3 + tree(&rest[3..], &[], &mut self.paths);
                }
                Token::Word(word) if word == "super" && is_path_separator(&rest[1..]) => {
                    let mut parents = 0;
                    while matches!(&tokens[at], Token::Word(word) if word == "super")
                        && is_path_separator(&tokens[at + 1..])
                    {
                        parents += 1;
                        at += 3;
                    }
                    if parents == depth {
                        at += tree(&tokens[at..], &[], &mut self.paths);
                    }
                }
                Token::Group(_, content) => {
                    self.walk(content, depth);
                    at += 1;
                }
                _ => at += 1,
            }
            // A visibility may come between the attribute and the item.
            let is_visibility =
                matches!(token, Token::Word(word) if word == "pub") || matches!(token, Token::Group('(', _));
            if !is_visibility {
                path_attribute = None;
            }
        }
    }
}

/// Returns the content of an attribute at the start.
fn attribute(tokens: &[Token]) -> Option<&[Token]> {
    match tokens {
        [Token::Sign('#'), Token::Group('[', content), ..] => Some(content),
        _ => None,
    }
}

/// Returns true for `cfg(test)` and other conditions that name `test` without `not`.
fn is_for_tests(attribute: &[Token]) -> bool {
    match attribute {
        [Token::Word(name), Token::Group(_, condition)] if name == "cfg" => {
            has_word(condition, "test") && !has_word(condition, "not")
        }
        _ => false,
    }
}

fn has_word(tokens: &[Token], word: &str) -> bool {
    tokens.iter().any(|token| match token {
        Token::Word(found) => found == word,
        Token::Group(_, content) => has_word(content, word),
        _ => false,
    })
}

fn named_path(attribute: &[Token]) -> Option<String> {
    match attribute {
        [Token::Word(name), Token::Sign('='), Token::Text(path)] if name == "path" => Some(path.clone()),
        _ => None,
    }
}

/// Returns the number of tokens of the item, field or statement at the start: up to its semicolon, body or comma.
fn item_length(tokens: &[Token]) -> usize {
    let (mut angles, mut last) = (0_i32, ' ');
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Group('{', _) => return at + 1,
            Token::Sign(sign) => match sign {
                ';' => return at + 1,
                ',' if angles == 0 => return at + 1,
                '<' => angles += 1,
                '>' if last != '-' && last != '=' => angles -= 1,
                _ => {}
            },
            _ => {}
        }
        last = if let Token::Sign(sign) = token { *sign } else { ' ' };
    }
    tokens.len()
}

fn is_path_separator(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::Sign(':'), Token::Sign(':'), ..])
}

/// Parses the tree of paths at the start, and prepends `prefix` to each. Returns its length in tokens.
fn tree(tokens: &[Token], prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let (mut path, mut at) = (prefix.to_vec(), 0);
    loop {
        match tokens.get(at) {
            Some(Token::Group('{', content)) => {
                let is_comma = |token: &Token| *token == Token::Sign(',');
                for part in content.split(is_comma).filter(|part| !part.is_empty()) {
                    tree(part, &path, paths);
                }
                return at + 1;
            }
            Some(Token::Word(word)) => {
                // `use a::{self}` names `a`.
                if word != "self" || path.is_empty() {
                    path.push(word.to_string());
                }
                at += 1;
            }
            // A glob, or the start of type arguments.
            _ => break,
        }
        if let Some([Token::Word(word), Token::Word(name)]) = tokens.get(at..at + 2)
            && word == "as"
        {
            path.push(name.to_string());
            at += 2;
            break;
        }
        if !is_path_separator(&tokens[at..]) {
            break;
        }
        at += 2;
    }
    paths.push(path);
    at
}

fn paths(depth: usize, source: &str) -> Vec<String> {
    SourceParts::read(source, depth).paths.iter().map(|path| path.join("::")).collect()
}

#[test]
fn paths_to_the_root_are_found_wherever_they_are() {
    let source = r##"
        //! crate::comment
        use crate::{a::{B, c::D as E}, f, g::*};
        pub(crate) use crate::h::{self, I};
        /// [`crate::doc`]
        fn run(x: crate::j::K<crate::l::M>) -> impl Fn(crate::n::O) {
            let text = "crate::text"; let raw = r#"crate::raw"#; let c = 'c';
            vec![crate::p::<u8>(), crate::q!()]; $crate::r::s();
            super::super::t::u(); super::sibling(); self::own();
        }
        mod inner { use super::super::super::v; use super::super::w; }
    "##;
    let found = paths(2, source);
    let expected =
        ["a::B", "a::c::D::E", "f", "g", "h", "h::I", "j::K", "l::M", "n::O", "p", "q", "r::s", "t::u", "v"];
    assert_eq!(found, expected);
    assert_eq!(paths(1, "use super::a::B; use super::*; fn f() { super::super::no(); }"), ["a::B", ""]);
}

#[test]
fn code_for_tests_does_not_count() {
    let source = r#"
        #[cfg(test)] mod tests;
        #[cfg(test)] mod more { use crate::a; }
        #[cfg(any(test, feature = "testing"))] use crate::{b, c};
        #[cfg(test)] #[allow(dead_code)] fn f<A, B>(x: crate::d::E) -> Vec<u8> { crate::f() }
        struct S { #[cfg(test)] g: HashMap<u8, crate::g::G>, h: crate::h::H }
        #[cfg(not(test))] use crate::i;
        #[cfg(unix)] mod j;
        #[path = "odd/k.rs"] pub(crate) mod k;
        mod l;
    "#;
    let found = SourceParts::read(source, 1);
    assert_eq!(paths(1, source), ["h::H", "i"]);
    let declared: Vec<_> =
        found.declared.iter().map(|module| (module.name.as_str(), module.path.as_deref())).collect();
    assert_eq!(declared, [("j", None), ("k", Some("odd/k.rs")), ("l", None)]);
}
