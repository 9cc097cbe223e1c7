//! Archives that are being received: limits on their number, per address and in total, and on their stored bytes.
//!
//! Any caller may verify an archive, so a slot is taken before the first byte of a body is read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bench_domain::Code;
use bench_web::ApiError;
use bench_web::attempts::network_of;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Maximum number of archives that are received at the same time.
const SLOTS: usize = 8;
/// Maximum number of slots per address, or per IPv6 /64 network. Loopback has no such limit, since all local
/// callers share an address.
const SLOTS_PER_ADDRESS: usize = 4;
/// Bytes per permit of the storage.
const PERMIT_BYTES: u64 = 64 * 1024;
/// Number of bytes to read from a stream at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum size of an archive, and advice for callers with larger ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimit {
    pub(crate) bytes: u64,
    pub(crate) advice: &'static str,
}

impl SizeLimit {
    /// Creates a 413 for a larger archive.
    pub(crate) fn exceeded(self) -> ApiError {
        let Self { bytes, advice } = self;
        let detail = format!("the archive has more than {bytes} bytes, which is the maximum here; {advice}");
        ApiError::new(Code::BodyTooLarge, detail)
    }
}

/// Limits of received archives until they are verified.
#[derive(Debug)]
pub(crate) struct Spools {
    slots: Arc<Semaphore>,
    storage: Arc<Semaphore>,
    wait: Duration,
    by_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Spools {
    /// Creates the limits. At most `bytes_max` bytes of all archives together are stored; `wait` is the
    /// maximum time to wait for a slot.
    pub(crate) fn new(bytes_max: u64, wait: Duration) -> Self {
        let permits = usize::try_from(bytes_max.div_ceil(PERMIT_BYTES)).unwrap_or(usize::MAX);
        Self {
            slots: Arc::new(Semaphore::new(SLOTS)),
            storage: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            wait,
            by_address: Arc::default(),
        }
    }

    /// Takes a slot for an archive of limited size. `peer` is unknown if a gateway received the request.
    ///
    /// # Errors
    /// 503 when no slot is free.
    pub(crate) async fn begin(&self, peer: Option<IpAddr>, limit: SizeLimit) -> Result<Spool, ApiError> {
        let share = peer.filter(|peer| !peer.is_loopback()).map(|peer| self.share(network_of(peer)));
        let share = share.transpose()?;
        let slot = match timeout(self.wait, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(slot) => slot.map_err(ApiError::internal)?,
            Err(_) => return Err(busy()),
        };
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(ApiError::internal)?;
        let file = tokio::fs::File::from_std(file.map_err(failed)?);
        let storage = Arc::clone(&self.storage);
        Ok(Spool { file, bytes: 0, limit, storage, stored: None, _slot: slot, _share: share })
    }

    fn share(&self, address: IpAddr) -> Result<Share, ApiError> {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_default();
        if *count >= SLOTS_PER_ADDRESS {
            return Err(busy());
        }
        *count += 1;
        Ok(Share { address, by_address: Arc::clone(&self.by_address) })
    }
}

/// A slot that counts against an address.
#[derive(Debug)]
struct Share {
    address: IpAddr,
    by_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// An archive that is being received, into an unnamed file that the system deletes when its last handle is closed.
#[derive(Debug)]
pub(crate) struct Spool {
    file: tokio::fs::File,
    bytes: u64,
    limit: SizeLimit,
    storage: Arc<Semaphore>,
    stored: Option<OwnedSemaphorePermit>,
    _slot: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// A received archive. Its bytes count as stored until it is dropped.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) file: File,
    _stored: Option<OwnedSemaphorePermit>,
}

impl Spooled {
    /// Returns the file, and a guard that must live as long as the file.
    pub(crate) fn into_parts(self) -> (File, impl Send + use<>) {
        (self.file, self._stored)
    }
}

impl Spool {
    /// Appends bytes.
    ///
    /// # Errors
    /// 413 for more bytes than the archive may have, 503 when all archives together have too many.
    pub(crate) async fn write(&mut self, piece: &[u8]) -> Result<(), ApiError> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.limit.bytes {
            return Err(self.limit.exceeded());
        }
        let has = self.stored.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) as u64;
        let missing = self.bytes.div_ceil(PERMIT_BYTES).saturating_sub(has);
        if missing > 0 {
            let missing = u32::try_from(missing).map_err(ApiError::internal)?;
            let more = Arc::clone(&self.storage).try_acquire_many_owned(missing).map_err(|_| busy())?;
            match &mut self.stored {
                Some(stored) => stored.merge(more),
                None => self.stored = Some(more),
            }
        }
        self.file.write_all(piece).await.map_err(failed)
    }

    /// Appends a whole stream.
    ///
    /// # Errors
    /// Those of [`Spool::write`], and 500 when the stream breaks.
    pub(crate) async fn copy(&mut self, stream: impl AsyncRead) -> Result<(), ApiError> {
        let mut stream = std::pin::pin!(stream);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = stream.read(&mut piece).await.map_err(failed)?;
            match piece.get(..count) {
                Some(read) if !read.is_empty() => self.write(read).await?,
                _ => return Ok(()),
            }
        }
    }

    /// Completes the file and releases the slot.
    ///
    /// # Errors
    /// 500 when the file can't be written.
    pub(crate) async fn finish(self) -> Result<Spooled, ApiError> {
        let Self { mut file, stored, .. } = self;
        file.flush().await.map_err(failed)?;
        file.rewind().await.map_err(failed)?;
        Ok(Spooled { file: file.into_std().await, _stored: stored })
    }
}

fn busy() -> ApiError {
    ApiError::new(
        Code::ServerBusy,
        "the server is receiving as many archives as it can; try again in a minute",
    )
}

fn failed(error: io::Error) -> ApiError {
    ApiError::internal(format!("an archive could not be stored: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(20);

    const fn limit(bytes: u64) -> SizeLimit {
        SizeLimit { bytes, advice: "send a smaller one" }
    }

    #[tokio::test]
    async fn slots_and_bytes_are_free_again_when_an_archive_is_gone() {
        let spools = Spools::new(10 * PERMIT_BYTES, QUICK);
        let mut all = Vec::new();
        for _ in 0..SLOTS {
            all.push(spools.begin(None, limit(u64::MAX)).await.unwrap());
        }
        assert_eq!(spools.begin(None, limit(u64::MAX)).await.unwrap_err().status(), 503);
        let mut first = all.remove(0);
        first.write(&vec![0; 8 * PERMIT_BYTES as usize]).await.unwrap();
        let spooled = first.finish().await.unwrap();
        // The slot is free, but the bytes are still stored.
        let mut second = spools.begin(None, limit(u64::MAX)).await.unwrap();
        let piece = vec![0; PERMIT_BYTES as usize];
        second.write(&piece).await.unwrap();
        second.write(&piece).await.unwrap();
        assert_eq!(second.write(&piece).await.unwrap_err().status(), 503);
        drop(spooled);
        second.write(&piece).await.unwrap();
        let mut small = Spools::new(u64::MAX, QUICK).begin(None, limit(3)).await.unwrap();
        small.write(b"abc").await.unwrap();
        assert_eq!(small.write(b"d").await.unwrap_err().status(), 413);
    }

    #[tokio::test]
    async fn one_address_has_a_part_of_the_slots() {
        let spools = Spools::new(u64::MAX, QUICK);
        let far = Some("192.0.2.1".parse().unwrap());
        let mut all = Vec::new();
        for _ in 0..SLOTS_PER_ADDRESS {
            all.push(spools.begin(far, limit(1)).await.unwrap());
        }
        assert_eq!(spools.begin(far, limit(1)).await.unwrap_err().status(), 503);
        let here = Some("127.0.0.1".parse().unwrap());
        for _ in 0..SLOTS - SLOTS_PER_ADDRESS {
            all.push(spools.begin(here, limit(1)).await.unwrap());
        }
        drop(all);
        // One customer has a whole IPv6 network.
        let mut all = Vec::new();
        for n in 0..SLOTS_PER_ADDRESS {
            let far = format!("2001:db8::{n}:1").parse().ok();
            all.push(spools.begin(far, limit(1)).await.unwrap());
        }
        let other = |address: &str| Some(address.parse().unwrap());
        assert_eq!(spools.begin(other("2001:db8::ffff"), limit(1)).await.unwrap_err().status(), 503);
        all.push(spools.begin(other("2001:db8:0:1::1"), limit(1)).await.unwrap());
        drop(all);
        assert!(spools.by_address.lock().unwrap().is_empty());
        spools.begin(far, limit(1)).await.unwrap();
    }
}
