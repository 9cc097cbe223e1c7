//! Buffered reading of a file at known positions.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const CHUNK: usize = 8 << 10;

/// A file that is read through a window of bytes.
pub struct Source {
    file: File,
    /// Bytes from the file position `base` on.
    window: Vec<u8>,
    base: u64,
    /// Number of bytes of the window that have been consumed.
    used: usize,
}

impl Source {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, window: Vec::new(), base: 0, used: 0 })
    }

    /// Returns the position of the next byte.
    pub fn position(&self) -> u64 {
        self.base + self.used as u64
    }

    /// Continues at another position.
    pub fn seek(&mut self, position: u64) -> io::Result<()> {
        let end = self.base + self.window.len() as u64;
        if (self.base..=end).contains(&position) {
            self.used = (position - self.base) as usize;
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(position))?;
        self.window.clear();
        self.base = position;
        self.used = 0;
        Ok(())
    }

    /// Returns the next bytes without consuming them: at least `wanted`, or all that are left in the file.
    pub fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.window.len() - self.used < wanted {
            if wanted > CHUNK {
                // A large batch: moves what is left into a window that has room for all of it.
                let mut larger = Vec::with_capacity(wanted + CHUNK);
                larger.extend_from_slice(&self.window[self.used..]);
                self.window = larger;
                self.used = 0;
            } else if self.used > 0 {
                self.window.drain(..self.used);
                self.base += self.used as u64;
                self.used = 0;
            }
            while self.window.len() - self.used < wanted {
                let filled = self.window.len();
                self.window.resize(filled + CHUNK, 0);
                let count = self.file.read(&mut self.window[filled..])?;
                self.window.truncate(filled + count);
                if count == 0 {
                    break;
                }
            }
        }
        Ok(&self.window[self.used..])
    }

    /// Consumes bytes that `peek` returned.
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.window.len() - self.used);
        self.used += count;
    }
}
