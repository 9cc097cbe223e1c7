//! Pieces of paragraphs, between which lines can be broken.

use crate::width;

/// Break opportunity after a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    Space,
    Hyphen,
    Soft,
    Zero,
    /// End of the paragraph.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub width: usize,
    pub after: Break,
}

/// Splits a text into paragraphs: runs of lines that aren't blank.
pub fn paragraphs(text: &str) -> Vec<Vec<Piece>> {
    let mut found = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim_matches(is_space).is_empty() {
            paragraph.push_str(line);
            paragraph.push('\n');
        } else if !paragraph.is_empty() {
            let pieces = pieces(&paragraph);
            if !pieces.is_empty() {
                found.push(pieces);
            }
            paragraph.clear();
        }
    }
    found
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

fn pieces(paragraph: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for word in paragraph.split(is_space) {
        let before = pieces.len();
        let mut text = String::new();
        let mut characters = word.chars().peekable();
        let mut last = None;
        while let Some(character) = characters.next() {
            let after = match character {
                '\u{ad}' => Some(Break::Soft),
                '\u{200b}' => Some(Break::Zero),
                '-' => {
                    text.push('-');
                    let is_between = last.is_some_and(char::is_alphanumeric) && characters.peek().is_some_and(|next| next.is_alphanumeric());
                    is_between.then_some(Break::Hyphen)
                }
                other => {
                    text.push(if other == '\u{a0}' { ' ' } else { other });
                    None
                }
            };
            last = Some(character);
            if let Some(after) = after
                && !text.is_empty()
            {
                pieces.push(piece(std::mem::take(&mut text), after));
            }
        }
        if !text.is_empty() {
            pieces.push(piece(text, Break::Space));
        } else if pieces.len() > before
            && let Some(last) = pieces.last_mut()
        {
            last.after = Break::Space;
        }
    }
    if let Some(last) = pieces.last_mut() {
        last.after = Break::End;
    }
    pieces
}

fn piece(text: String, after: Break) -> Piece {
    Piece { width: width::columns(&text), text, after }
}
