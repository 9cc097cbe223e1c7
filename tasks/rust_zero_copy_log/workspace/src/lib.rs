//! Parser for event logs.
//!
//! # Format
//!
//! - A log consists of lines that end with LF or CR LF; the last one may have no end. Blanks are spaces and tabs. Lines of blanks only, and
//!   lines whose first character other than a blank is `#`, are skipped.
//! - All other lines are records: fields with blanks between them. A field is a key, or a key, `=` and a value, without blanks around `=`.
//! - A key is made of characters other than blanks, `=`, `"` and control characters, and isn't empty. ASCII letters in it are changed to lower
//!   case. A record has no two equal keys.
//! - A bare value is made of characters other than blanks, `"` and control characters, and may be empty.
//! - A string stands in double quotes and may go on over several lines. It has the escapes `\\`, `\"`, `\n`, `\r` and `\t`; a backslash
//!   at the end of a line removes this line end and the blanks at the beginning of the next line. A CR LF in a string becomes LF.
//!   Other control characters than tab, LF and CR LF aren't allowed. A blank or the line's end follows a string.
//!
//! # Errors
//!
//! Lines and columns are counted from 1. A column is a character; line ends in strings begin a new line. After an error, the rest of the line in which it was
//! found is skipped, without a look at it, even if a string had begun there or before. After an unterminated string, nothing is left.
//!
//! Bytes in comments and skipped text needn't be UTF-8.

mod error;
mod record;
mod scan;
mod stream;

pub use error::{ErrorKind, ParseError};
pub use record::{Field, Record, Value};
pub use stream::Stream;

/// Parses a whole log.
pub fn parse(input: &[u8]) -> Vec<Result<Record, ParseError>> {
    let mut stream = Stream::new();
    let mut items = stream.push(input);
    items.extend(stream.finish());
    items
}
