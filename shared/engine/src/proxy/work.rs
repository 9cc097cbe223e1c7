//! Limits of builds and pulls while they run: time, disk space, and the end of what they started.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Response;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::time::Instant;

use super::Shared;
use crate::build_group::BuildGroup;
use crate::client::{AnyBody, BoxError};

/// Interval between checks of the disk.
const DISK_INTERVAL: Duration = Duration::from_secs(1);

/// Response to a build or pull with what ends together with it.
struct Work<G> {
    body: BodyStream<AnyBody>,
    limits: WorkLimits,
    /// Dropped when the work has ended, however it ended.
    _guard: G,
}

/// Limits of one build or pull.
struct WorkLimits {
    deadline: Instant,
    disk: Option<Disk>,
    group: Option<BuildGroup>,
}

/// Space on the engine's disk.
struct Disk {
    storage: std::path::PathBuf,
    /// The work ends when less is free, in bytes.
    free_min: u64,
}

impl Shared {
    /// Limits the response to a build or pull. A limit that is exceeded is the last line, in the form of an engine's
    /// error, which clients show. `guard` is dropped at the end. `group` is the group of a build.
    pub(super) fn limit_work(
        &self,
        response: Response<AnyBody>,
        group: Option<BuildGroup>,
        guard: impl Send + 'static,
    ) -> Response<AnyBody> {
        if !response.status().is_success() {
            return response;
        }
        let limits = &self.rules.limits;
        let disk = self.storage.as_deref().and_then(|storage| {
            let free_min = free_bytes(storage)?
                .saturating_sub(limits.build_disk_bytes_max)
                .max(limits.disk_reserve_bytes);
            Some(Disk { storage: storage.to_owned(), free_min })
        });
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(http::header::CONTENT_LENGTH);
        let work = Work {
            body: BodyStream::new(body),
            limits: WorkLimits { deadline: Instant::now() + limits.build_time_max, disk, group },
            _guard: guard,
        };
        let frames = stream::unfold(Some(work), |work| async move {
            let mut work = work?;
            let exceeded = tokio::select! {
                biased;
                exceeded = work.limits.exceeded() => exceeded,
                frame = work.body.next() => return Some((frame?, Some(work))),
            };
            let line = json!({ "errorDetail": { "message": exceeded }, "error": exceeded });
            // The rest is dropped, which also closes the connection to the engine.
            Some((Ok::<_, BoxError>(Frame::data(Bytes::from(format!("{line}\n")))), None))
        });
        Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
    }
}

impl WorkLimits {
    /// Waits until a limit is exceeded, and describes it.
    async fn exceeded(&self) -> &'static str {
        loop {
            let next = (Instant::now() + DISK_INTERVAL).min(self.deadline);
            tokio::time::sleep_until(next).await;
            if Instant::now() >= self.deadline {
                return "the host's time limit of builds and pulls was exceeded";
            }
            let is_short = |disk: &Disk| free_bytes(&disk.storage).is_some_and(|free| free < disk.free_min);
            if self.disk.as_ref().is_some_and(is_short) {
                return "the host's disk limit of builds and pulls was exceeded";
            }
            let Some(group) = self.group.clone() else { continue };
            if tokio::task::spawn_blocking(move || group.has_too_many()).await.unwrap_or(false) {
                return "the build made more control groups than the host allows";
            }
        }
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}
