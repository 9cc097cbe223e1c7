//! Parses server-sent events (WHATWG HTML, section 9.2.6) as the bytes arrive.

use memchr::memchr;

use super::lines::{FRAME_BYTES_MAX, FrameTooLarge, Line, LineParser};

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its `data` lines, joined by line ends.
    pub(crate) data: &'a [u8],
    /// True for events named `error`.
    pub(crate) is_error: bool,
}

/// State between two chunks. Chunks may be split anywhere, also inside a character.
///
/// Data in one chunk and one line, the usual case, is passed on without a copy.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    lines: LineParser,
    event: OpenEvent,
}

/// An event whose end has not arrived.
#[derive(Debug, Default)]
struct OpenEvent {
    data: Vec<u8>,
    has_data: bool,
    is_error: bool,
    /// True after the stream's first line, which may begin with a byte order mark.
    started: bool,
}

impl SseParser {
    /// Processes the next chunk. `on_event` gets each event that it completes, and may stop the parser with an error.
    pub(crate) fn push<E: From<FrameTooLarge>>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { lines, event } = self;
        lines.push(chunk, |line| event.take_line(line, &mut on_event))
    }

    /// Ends the stream: passes on the rest without its last line end.
    pub(crate) fn finish<E: From<FrameTooLarge>>(
        &mut self,
        mut on_event: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { lines, event } = self;
        lines.finish(|line| event.take_line(line, &mut on_event))?;
        event.dispatch(&mut on_event)
    }
}

impl OpenEvent {
    fn take_line<E: From<FrameTooLarge>>(
        &mut self,
        Line { bytes: line, precedes_empty }: Line<'_>,
        on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = match std::mem::replace(&mut self.started, true) {
            false => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            true => line,
        };
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => {
                let value = line.get(colon + 1..).unwrap_or_default();
                (line.get(..colon).unwrap_or_default(), value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            // An event of one line that ends in this chunk needs no copy.
            b"data" if precedes_empty && !self.has_data => {
                let is_error = std::mem::take(&mut self.is_error);
                on_event(Event { data: value, is_error })
            }
            b"data" => {
                if self.data.len() + value.len() >= FRAME_BYTES_MAX {
                    return Err(FrameTooLarge.into());
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
                Ok(())
            }
            b"event" => {
                self.is_error = value == b"error";
                Ok(())
            }
            // Comments have an empty name; `id` and `retry` are for clients that reconnect.
            _ => Ok(()),
        }
    }

    fn dispatch<E>(&mut self, on_event: &mut impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let is_error = std::mem::take(&mut self.is_error);
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        let result = on_event(Event { data: &self.data, is_error });
        self.data.clear();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Result<Vec<(String, bool)>, FrameTooLarge> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut on_event = |event: Event<'_>| {
            events.push((String::from_utf8_lossy(event.data).into_owned(), event.is_error));
            Ok(())
        };
        for chunk in chunks {
            parser.push(chunk, &mut on_event)?;
        }
        parser.finish(&mut on_event)?;
        Ok(events)
    }

    fn data(text: &str) -> Vec<String> {
        events(&[text.as_bytes()]).unwrap().into_iter().map(|(data, _)| data).collect()
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["data: a", "", ": comment", "id: 7", "data:b", "data: c", "", "data", "", "data: d"]
                .join(end);
            assert_eq!(data(&text), ["a", "b\nc", "", "d"], "{end:?}");
        }
    }

    #[test]
    fn names_and_the_byte_order_mark() {
        assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
        let named = events(&[b"event: error\ndata: a\n\ndata: b\n\nevent: x\ndata: c\n\n"]).unwrap();
        assert_eq!(named, [("a".into(), true), ("b".into(), false), ("c".into(), false)]);
        assert_eq!(data("event: ping\n\n: only\n\n\n"), Vec::<String>::new());
    }

    #[test]
    fn an_endless_line_or_event_is_refused() {
        let piece = vec![b'x'; FRAME_BYTES_MAX / 2 + 1];
        assert_eq!(events(&[b"data: ", &piece, &piece]), Err(FrameTooLarge));
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        assert_eq!(events(&[&line, &line]), Err(FrameTooLarge));
        assert_eq!(events(&[&line]).unwrap().len(), 1);
    }

    proptest! {
        /// For any split of the bytes, the events are the same as for the whole.
        #[test]
        fn cuts_do_not_matter(
            lines in prop::collection::vec(
                prop_oneof![
                    Just(String::new()), Just(": c".to_owned()), Just("event: error".to_owned()),
                    "data: [a-zé漢😀{}]{0,6}", "data:[a-z]{0,3}", "[a-z]{0,3}",
                ], 0..12),
            ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let bytes = text.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for place in places {
                chunks.push(&bytes[from..place]);
                from = place;
            }
            chunks.push(&bytes[from..]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = events(&[bytes]).unwrap();
            prop_assert_eq!(&events(&chunks).unwrap(), &whole);
            prop_assert_eq!(&events(&single).unwrap(), &whole);
        }
    }
}
