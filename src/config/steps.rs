//! The way from a path to its file: every name on it whose change can change what is read.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Symlinks followed at most, as Linux does.
const MAX_LINKS: usize = 40;

/// The places that decide what `path` reads now: each symlink on the way, and the file at its end
/// (or the first name that is missing). No folder of these places has a symlink in it.
///
/// For a file that Kubernetes mounts these are three: `tidegate.toml` and `..data` in the mount,
/// and `tidegate.toml` in the folder that `..data` points to.
pub(super) fn steps(path: &Path) -> Vec<PathBuf> {
    let mut steps = Vec::new();
    let mut links = 0;
    let mut done = PathBuf::new();
    let mut ahead: VecDeque<OsString> = names(path);
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            done.pop();
            continue;
        }
        let here = done.join(&name);
        let last = ahead.is_empty();
        match std::fs::read_link(&here) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                steps.push(here);
                if target.is_absolute() {
                    done = PathBuf::new();
                }
                for name in names(&target).into_iter().rev() {
                    ahead.push_front(name);
                }
            }
            _ if last || here.symlink_metadata().is_err() => {
                steps.push(here);
                break;
            }
            _ => done = here,
        }
    }
    steps
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    steps: Vec<PathBuf>,
    modified: Option<SystemTime>,
    bytes: Option<u64>,
}

impl Fingerprint {
    pub(super) fn of(path: &Path) -> Self {
        let found = std::fs::metadata(path).ok();
        Self {
            steps: steps(path),
            modified: found.as_ref().and_then(|found| found.modified().ok()),
            bytes: found.map(|found| found.len()),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().canonicalize().unwrap();
        (temporary, path)
    }

    #[test]
    fn a_plain_file_is_one_step_and_so_is_one_that_is_missing() {
        let (_keep, at) = folder();
        assert_eq!(steps(&at.join("t.toml")), [at.join("t.toml")]);
        fs::write(at.join("t.toml"), "").unwrap();
        assert_eq!(steps(&at.join("./x/../t.toml")), [at.join("x")]);
        assert_eq!(steps(&at.join("t.toml")), [at.join("t.toml")]);
        assert_eq!(steps(&at.join("gone/deeper/t.toml")), [at.join("gone")]);
    }

    #[test]
    fn each_symlink_on_the_way_is_a_step() {
        let (_keep, at) = folder();
        fs::create_dir(at.join("..v1")).unwrap();
        fs::write(at.join("..v1/t.toml"), "").unwrap();
        symlink("..v1", at.join("..data")).unwrap();
        symlink("..data/t.toml", at.join("t.toml")).unwrap();
        symlink(at.join("t.toml"), at.join("absolute")).unwrap();
        let chain = [at.join("t.toml"), at.join("..data"), at.join("..v1/t.toml")];
        assert_eq!(steps(&at.join("t.toml")), chain);
        assert_eq!(steps(&at.join("absolute"))[1..], chain);
    }

    #[test]
    fn a_circle_of_symlinks_ends() {
        let (_keep, at) = folder();
        symlink("b", at.join("a")).unwrap();
        symlink("a", at.join("b")).unwrap();
        assert_eq!(steps(&at.join("a")).len(), MAX_LINKS + 1);
    }
}
