//! A file that is there only once it is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A file that is being written beside its place, and takes that once it is whole. If it is
/// dropped before, nothing is left of it.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    kept: bool,
}

impl Output {
    /// Starts a file; one that is there is refused, or with `force` replaced at the end.
    pub(super) fn create(path: &Path, force: bool) -> anyhow::Result<Self> {
        if !force && path.exists() {
            bail!("{} exists; replace it with --force", path.display());
        }
        let partial = partial(path);
        let file =
            File::create(&partial).with_context(|| format!("writing {}", partial.display()))?;
        Ok(Self { path: path.to_owned(), partial, file, kept: false })
    }

    /// Puts the whole file in its place; answers how many bytes it has.
    pub(super) fn keep(mut self) -> anyhow::Result<u64> {
        let keep = || {
            self.file.sync_all()?;
            let bytes = self.file.metadata()?.len();
            fs::rename(&self.partial, &self.path)?;
            io::Result::Ok(bytes)
        };
        let bytes = keep().with_context(|| format!("writing {}", self.path.display()))?;
        self.kept = true;
        Ok(bytes)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.kept {
            // Half a recording is of no use to anyone. If it cannot be removed, so be it.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_its_place_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"whole").unwrap();
        assert_eq!(output.keep().unwrap(), 5);
        let refused = Output::create(&path, false).unwrap_err().to_string();
        assert!(refused.contains("exists; replace it with --force"), "{refused}");
        let mut output = Output::create(&path, true).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole", "until the new one is whole");
        output.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
