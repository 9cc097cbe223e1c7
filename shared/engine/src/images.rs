//! Images that sandboxes keep for reuse, because they built or pulled them: when each was used, and removal of the least
//! recently used ones.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Client, ClientError};
use crate::labels::LABEL_INSTANCE;
use crate::rules::{full_name, tagged_name};

/// Time after its last use in which an image isn't removed, since a container may be about to start from it.
const RECENT: Duration = Duration::from_secs(600);
/// Maximum length of a file's name, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Folder with the records of images that were pulled.
const PULLED: &str = "pulled";

/// Images that sandboxes of any host built on an engine, which have a common prefix, or that an engine pulled for them,
/// within a size limit.
#[derive(Debug)]
pub struct ImageCache {
    folder: PathBuf,
    prefix: String,
    bytes_max: u64,
    evicting: tokio::sync::Mutex<()>,
    /// Held by the only call that waits to evict.
    waiting: tokio::sync::Mutex<()>,
}

/// An image of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CachedImage {
    names: Vec<String>,
    bytes: u64,
    last_used: SystemTime,
}

impl ImageCache {
    /// Creates a cache. `folder` has a file for each image, whose time of change is that of the last use; hosts may
    /// share it. `prefix` is the beginning of full names of images, such as `docker.io/library/bench__`.
    pub fn open(folder: impl Into<PathBuf>, prefix: impl Into<String>, bytes_max: u64) -> io::Result<Self> {
        let folder = folder.into();
        std::fs::create_dir_all(folder.join(PULLED))?;
        Ok(Self {
            folder,
            prefix: prefix.into(),
            bytes_max,
            evicting: tokio::sync::Mutex::default(),
            waiting: tokio::sync::Mutex::default(),
        })
    }

    /// Records that an engine has pulled an image which it didn't have. The image belongs to the cache as long as it has this
    /// id.
    pub(crate) fn record_pull(&self, reference: &str, id: &str) {
        if self.record(reference).is_none()
            && let Some(path) = self.pull_record(reference)
            && let Err(error) = std::fs::write(&path, id)
        {
            tracing::warn!(path = %path.display(), %error, "Pull of an image was not recorded");
        }
    }

    /// Records a use of an image, if it belongs to the cache.
    pub(crate) fn touch(&self, reference: &str) {
        let pulled = || self.pull_record(reference).filter(|path| path.exists());
        if let Some(path) = self.record(reference).or_else(pulled) {
            Self::write(&path);
        }
    }

    fn write(path: &Path) {
        let touched = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            tracing::warn!(path = %path.display(), %error, "Use of an image was not recorded");
        }
    }

    /// Removes the least recently used images until the rest is within the size limit. Images that containers use
    /// stay, and those that were used within ten minutes.
    pub async fn evict(&self, client: &Client) -> Result<(), ClientError> {
        // Another call that waits will find what this one would find.
        let Ok(waiting) = self.waiting.try_lock() else { return Ok(()) };
        let _evicting = self.evicting.lock().await;
        drop(waiting);
        let found = client.expect(Method::GET, &self.list_address(), None).await?;
        let entries = found.as_array().map(Vec::as_slice).unwrap_or_default();
        let images = entries.iter().filter_map(|entry| self.cached(entry)).collect();
        for image in self.excess(images, SystemTime::now()) {
            for name in &image.names {
                // Without force, an engine keeps images that containers use.
                let (status, answer) = client.call(Method::DELETE, &format!("/images/{name}"), None).await?;
                match status {
                    StatusCode::OK | StatusCode::NOT_FOUND => {
                        tracing::info!(image = name, image.bytes = image.bytes, "Removed the image {name}");
                        self.forget(name);
                    }
                    _ => {
                        let reason = answer["message"].as_str().unwrap_or("no message");
                        tracing::debug!(image = name, reason, "Image was not removed");
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the address of the engine's list of images. Those that were pulled have no label of ours.
    fn list_address(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("shared-size", "1");
        if !self.has_pulled() {
            query.append_pair("filters", &json!({ "label": [LABEL_INSTANCE] }).to_string());
        }
        format!("/images/json?{}", query.finish())
    }

    /// Returns the image of a list's entry; `None` if the entry doesn't belong to the cache.
    fn cached(&self, entry: &Value) -> Option<CachedImage> {
        let is_built = entry["Labels"][LABEL_INSTANCE].is_string();
        let names_in = |field: &str| -> Vec<String> {
            let names = entry[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.filter(|name| !name.starts_with("<none>")).map(str::to_owned).collect()
        };
        let mut names = names_in("RepoTags");
        if names.is_empty() {
            // It was pulled by its digest.
            names = names_in("RepoDigests");
        }
        let is_pulled = |name: &String| {
            let id = self.pull_record(name).and_then(|path| std::fs::read_to_string(path).ok());
            id.is_some_and(|id| !id.is_empty() && entry["Id"] == id.as_str())
        };
        let owns = |name: &String| (is_built && self.owns(name)) || is_pulled(name);
        // An image that also has another name is someone else's, too.
        if names.is_empty() || !names.iter().all(owns) {
            return None;
        }
        let number = |field: &str| entry[field].as_u64().unwrap_or_default();
        let created = UNIX_EPOCH + Duration::from_secs(number("Created").min(u64::from(u32::MAX)));
        let last_used = names.iter().filter_map(|name| self.last_use(name)).max().unwrap_or(created);
        Some(CachedImage { names, bytes: number("Size").saturating_sub(number("SharedSize")), last_used })
    }

    /// Returns the images to remove, least recently used first.
    fn excess(&self, mut images: Vec<CachedImage>, now: SystemTime) -> Vec<CachedImage> {
        images.sort_by_key(|image| image.last_used);
        let mut bytes = images.iter().map(|image| image.bytes).fold(0, u64::saturating_add);
        let mut excess = Vec::new();
        for image in images {
            if bytes <= self.bytes_max {
                break;
            }
            if now.duration_since(image.last_used).is_ok_and(|age| age >= RECENT) {
                bytes = bytes.saturating_sub(image.bytes);
                excess.push(image);
            }
        }
        excess
    }

    fn owns(&self, reference: &str) -> bool {
        full_name(reference).is_some_and(|name| name.starts_with(&self.prefix))
    }

    fn record(&self, reference: &str) -> Option<PathBuf> {
        let name = full_name(reference)?;
        let file = name.strip_prefix(&self.prefix)?;
        let is_file = file.len() <= NAME_BYTES_MAX && !file.contains('/') && !file.starts_with('.');
        (is_file && !file.is_empty()).then(|| self.folder.join(file))
    }

    /// Returns the path of the record of a pulled image, whether it exists or not.
    fn pull_record(&self, reference: &str) -> Option<PathBuf> {
        let file = tagged_name(reference)?.replace('/', "%");
        (file.len() <= NAME_BYTES_MAX && !file.starts_with('.')).then(|| self.folder.join(PULLED).join(file))
    }

    fn has_pulled(&self) -> bool {
        let records = std::fs::read_dir(self.folder.join(PULLED));
        records.is_ok_and(|mut records| records.next().is_some())
    }

    fn last_use(&self, reference: &str) -> Option<SystemTime> {
        let record = self.record(reference).or_else(|| self.pull_record(reference))?;
        std::fs::metadata(record).ok()?.modified().ok()
    }

    fn forget(&self, reference: &str) {
        if let Some(path) = self.record(reference).or_else(|| self.pull_record(reference))
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "Record of an image was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn records(cache: &ImageCache) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&cache.folder).unwrap().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn cache_in(folder: &Path, bytes_max: u64) -> ImageCache {
        ImageCache::open(folder.join("images"), "docker.io/library/bench__", bytes_max).unwrap()
    }

    #[test]
    fn uses_of_the_cache_s_images_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache_in(folder.path(), 0);
        for name in [
            "bench__a:1",
            "docker.io/library/bench__b:main-1",
            "debian",
            "bench__",
            "bench__../x",
            "x/bench__c",
        ] {
            cache.touch(name);
        }
        assert_eq!(records(&cache), ["a:1", "b:main-1"].map(str::to_owned).into());
        assert!(cache.last_use("bench__a:1").is_some());
        cache.forget("docker.io/library/bench__a:1");
        assert_eq!(cache.last_use("bench__a:1"), None);
    }

    #[test]
    fn only_images_of_the_cache_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache_in(folder.path(), 0);
        let labels = json!({ "bench-runner.instance": "i" });
        let of = |labels: &Value, names: Value| {
            cache.cached(
                &json!({ "Labels": labels, "RepoTags": names, "Size": 10, "SharedSize": 4, "Created": 1 }),
            )
        };
        let image = of(&labels, json!(["docker.io/library/bench__a:1", "<none>:<none>"])).unwrap();
        assert_eq!((image.names.len(), image.bytes), (1, 6));
        for names in [json!(null), json!([]), json!(["debian:1"]), json!(["bench__a:1", "mine:1"])] {
            assert_eq!(of(&labels, names), None);
        }
        assert_eq!(of(&json!({}), json!(["bench__a:1"])), None);
    }

    #[test]
    fn images_that_were_pulled_belong_to_the_cache_by_all_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache_in(folder.path(), 0);
        let of = |tags: Value, digests: Value| {
            cache.cached(
                &json!({ "Id": "i1", "RepoTags": tags, "RepoDigests": digests, "Size": 10, "Created": 1 }),
            )
        };
        assert!(!cache.has_pulled());
        cache.touch("debian");
        assert_eq!(of(json!(["debian:latest"]), json!(null)), None, "nobody pulled it here");
        let by_digest = format!("quay.io/a/b@sha256:{}", "c".repeat(64));
        for name in ["debian", "quay.io/a/b:1", by_digest.as_str(), "../x", "bench__a:1"] {
            cache.record_pull(name, "i1");
        }
        assert!(cache.has_pulled());
        let since = SystemTime::now() - Duration::from_secs(60);
        let pulled = of(json!(["docker.io/library/debian:latest"]), json!(null)).unwrap();
        assert!(pulled.last_used > since, "{pulled:?}");
        assert!(of(json!(["<none>:<none>"]), json!([by_digest])).is_some());
        assert_eq!(of(json!(["quay.io/a/b:1", "mine:1"]), json!([])), None);
        assert_eq!(of(json!(["bench__a:1"]), json!(null)), None, "it has no label of a build");
        cache.record_pull("debian", "i2");
        assert_eq!(of(json!(["debian:latest"]), json!(null)), None, "another image has the name now");
        cache.record_pull("debian", "i1");
        cache.touch("debian");
        assert!(of(json!(["debian:latest"]), json!(null)).is_some());
        cache.forget("debian:latest");
        assert_eq!(of(json!(["debian:latest"]), json!(null)), None);
    }

    #[test]
    fn the_least_recently_used_images_go_first_but_no_recent_ones() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache_in(folder.path(), 25);
        let now = SystemTime::now();
        let image = |name: &str, age_s: u64| CachedImage {
            names: vec![name.to_owned()],
            bytes: 10,
            last_used: now - Duration::from_secs(age_s),
        };
        let images = || vec![image("a", 900), image("b", 5_000), image("c", 1), image("d", 700)];
        let names =
            |images: Vec<CachedImage>| images.into_iter().flat_map(|image| image.names).collect::<Vec<_>>();
        assert_eq!(names(cache.excess(images(), now)), ["b", "a"]);
        let none = cache_in(folder.path(), 0);
        assert_eq!(names(none.excess(images(), now)), ["b", "a", "d"]);
        let all = cache_in(folder.path(), 40);
        assert_eq!(all.excess(images(), now), []);
    }
}
