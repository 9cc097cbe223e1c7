//! Splits a stream into lines as the bytes arrive.

use memchr::memchr2;

/// Maximum size of a line and of a server-sent event in bytes. Some servers send a whole answer as one event.
pub(crate) const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A line or event longer than [`FRAME_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameTooLarge;

/// One line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The line without its end.
    pub(crate) bytes: &'a [u8],
    /// True if an empty line is known to follow.
    pub(crate) precedes_empty: bool,
}

/// State between two chunks, which may be split anywhere. A line ends with LF, CR or both.
///
/// A line within one chunk is passed on without a copy.
#[derive(Debug, Default)]
pub(crate) struct LineParser {
    /// A line whose end has not arrived.
    line: Vec<u8>,
    /// True if the last chunk ended with CR: an LF at the start of the next one belongs to it.
    skip_lf: bool,
}

impl LineParser {
    /// Processes the next chunk. `on_line` gets each line that it completes, and may stop the parser with an error.
    pub(crate) fn push<E: From<FrameTooLarge>>(
        &mut self,
        mut chunk: &[u8],
        mut on_line: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.skip_lf) && chunk.first() == Some(&b'\n') {
                chunk = chunk.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                if self.line.len() + chunk.len() > FRAME_BYTES_MAX {
                    return Err(FrameTooLarge.into());
                }
                self.line.extend_from_slice(chunk);
                return Ok(());
            };
            let (head, rest) = chunk.split_at(end);
            self.skip_lf = rest == b"\r";
            chunk = rest.strip_prefix(b"\r\n").or(rest.get(1..)).unwrap_or_default();
            if self.line.is_empty() {
                let precedes_empty = matches!(chunk.first(), Some(b'\n' | b'\r'));
                on_line(Line { bytes: head, precedes_empty })?;
            } else {
                if self.line.len() + head.len() > FRAME_BYTES_MAX {
                    return Err(FrameTooLarge.into());
                }
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                on_line(Line { bytes: &line, precedes_empty: false })?;
                line.clear();
                self.line = line;
            }
        }
        Ok(())
    }

    /// Ends the stream: passes on the rest without a line end.
    pub(crate) fn finish<E>(&mut self, on_line: impl FnOnce(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() { Ok(()) } else { on_line(Line { bytes: &line, precedes_empty: false }) }
    }
}
