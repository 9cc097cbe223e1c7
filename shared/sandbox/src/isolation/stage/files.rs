//! Writes files into the working folder, where programs may have created links, pipes and folders.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::isolation::wire::{WriteRefusal, reason};

/// Maximum depth of a path.
const DEPTH_MAX: usize = 64;
/// Maximum length of a name in most file systems, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Size of one read, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// Follows no links and never leaves the folder.
const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Returns the path relative to the working folder, for a path that is relative or below `/workspace`. Returns `None`
/// for other paths, for the working folder itself, and for paths that lead out of it.
pub(crate) fn relative(path: &str) -> Option<PathBuf> {
    if path.contains('\0') || path.ends_with('/') {
        return None;
    }
    let path = Path::new(path);
    let path = if path.is_absolute() { path.strip_prefix("/workspace").ok()? } else { path };
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if name.len() <= NAME_BYTES_MAX => clean.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let depth = clean.components().count();
    (1..=DEPTH_MAX).contains(&depth).then_some(clean)
}

/// The open working folder.
pub(super) struct Home {
    folder: OwnedFd,
}

impl Home {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let folder =
            rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder })
    }

    /// Writes a temporary file next to the target and renames it: nothing that programs created (a link, a fifo) is
    /// ever opened, and readers see the old file or the new one.
    pub(super) fn write(&self, path: &Path, content: &mut impl Read) -> Result<(), WriteRefusal> {
        let name = path.file_name().ok_or(WriteRefusal::Path)?;
        let folder = self.sandbox_folder(path.parent().unwrap_or(Path::new("")))?;
        match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile => {
                return Err(WriteRefusal::Path);
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(refusal(error)),
        }
        let (temporary, mut file) = create(&folder)?;
        let written =
            copy(content, &mut file).map_err(|error| WriteRefusal::Failed(reason(&error.to_string())));
        let outcome = written.and_then(|()| {
            rustix::fs::renameat(&folder, &temporary, &folder, name).map_err(|error| match error {
                // A program created a folder there in the meantime.
                Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY => WriteRefusal::Path,
                error => refusal(error),
            })
        });
        if outcome.is_err() {
            // A file that can't be removed still counts toward the folder's limit.
            let _ = rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty());
        }
        outcome
    }

    /// Opens the folder at a path, and creates missing folders.
    fn sandbox_folder(&self, path: &Path) -> Result<OwnedFd, WriteRefusal> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut folder =
            self.folder.try_clone().map_err(|error| WriteRefusal::Failed(reason(&error.to_string())))?;
        for name in path.components() {
            let open = |folder: &OwnedFd| {
                rustix::fs::openat2(folder, name.as_os_str(), flags, Mode::empty(), RESOLVE)
            };
            let next = match open(&folder) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&folder, name.as_os_str(), Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => open(&folder),
                        Err(error) => Err(error),
                    }
                }
                other => other,
            };
            folder = next.map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NOENT => WriteRefusal::Path,
                error => refusal(error),
            })?;
        }
        Ok(folder)
    }
}

fn refusal(error: Errno) -> WriteRefusal {
    match error {
        Errno::NAMETOOLONG => WriteRefusal::Path,
        error => WriteRefusal::Failed(reason(&error.to_string())),
    }
}

/// Creates a file under a name that isn't taken.
fn create(folder: &OwnedFd) -> Result<(String, File), WriteRefusal> {
    const TRIES_MAX: u32 = 64;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..TRIES_MAX {
        let name = format!(".write-{}-{number}", uuid::Uuid::new_v4().simple());
        match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => return Ok((name, file.into())),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(refusal(error)),
        }
    }
    Err(WriteRefusal::Failed("cannot find a free file name".to_owned()))
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            bytes => to.write_all(&chunk[..bytes])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_folder_are_rejected() {
        for (path, clean) in [
            ("a", Some("a")),
            ("a/b.txt", Some("a/b.txt")),
            ("./a//b", Some("a/b")),
            ("/workspace/a", Some("a")),
            ("/workspace", None),
            ("/workspacex/a", None),
            ("/etc/passwd", None),
            ("../a", None),
            ("a/../b", None),
            ("/workspace/../etc/passwd", None),
            ("a/", None),
            ("", None),
            (".", None),
            ("a\0b", None),
        ] {
            assert_eq!(relative(path), clean.map(PathBuf::from), "{path:?}");
        }
        assert!(relative("a/".repeat(DEPTH_MAX).trim_end_matches('/')).is_some());
        assert_eq!(relative(&format!("{}b", "a/".repeat(DEPTH_MAX))), None);
        assert_eq!(relative(&"x".repeat(NAME_BYTES_MAX + 1)), None);
    }

    #[test]
    fn links_and_pipes_are_neither_followed_nor_opened() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let (home, out) = (folder.path(), outside.path());
        std::fs::write(out.join("secret"), "kept").unwrap();
        std::os::unix::fs::symlink(out.join("secret"), home.join("link")).unwrap();
        std::os::unix::fs::symlink(out, home.join("folder")).unwrap();
        std::os::unix::fs::symlink("/nowhere", home.join("dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, home.join("pipe"), Mode::from_raw_mode(0o644)).unwrap();
        std::fs::create_dir(home.join("real")).unwrap();
        let open = Home::open(home).unwrap();
        for path in ["link", "folder/new", "dangling", "pipe", "real", "link/below"] {
            let outcome = open.write(Path::new(path), &mut b"x".as_slice());
            assert!(matches!(outcome, Err(WriteRefusal::Path)), "{path}: {outcome:?}");
        }
        assert_eq!(std::fs::read_to_string(out.join("secret")).unwrap(), "kept");
        assert!(!out.join("new").exists());

        open.write(Path::new("real/deep/file"), &mut b"one".as_slice()).unwrap();
        open.write(Path::new("real/deep/file"), &mut b"two".as_slice()).unwrap();
        assert_eq!(std::fs::read_to_string(home.join("real/deep/file")).unwrap(), "two");
        assert_eq!(std::fs::read_dir(home.join("real/deep")).unwrap().count(), 1);
    }
}
