//! Compressed files as a stream of plain bytes, recognised by content.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::report::{DamageKind, OpenProblem};

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip; all its members are read.
    Gzip,
    /// zstd; all its frames are read.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// The bytes of a file, unpacked.
pub(super) enum Unpacker {
    Plain(Counted),
    Gzip(Box<MultiGzDecoder<Counted>>),
    Zstd(zstd::Decoder<'static, Counted>),
}

impl Unpacker {
    /// Looks at the first bytes of `file` and chooses how to unpack it.
    pub(super) fn new(file: Box<dyn Read + Send>) -> Result<Self, OpenProblem> {
        let mut file = Counted::new(file);
        let first = file.first_bytes().map_err(OpenProblem::Io)?;
        Ok(match first {
            [0x1f, 0x8b, ..] => Self::Gzip(Box::new(MultiGzDecoder::new(file))),
            // A frame, or one of the sixteen kinds of frame that are to be skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Self::Zstd(zstd::Decoder::with_buffer(file).map_err(OpenProblem::Io)?)
            }
            [0xfd, b'7', b'z', b'X', ..] => return Err(OpenProblem::Packed("xz", "xz -d")),
            [b'P', b'K', 3, 4, ..] => return Err(OpenProblem::Packed("zip", "unzip")),
            [b'B', b'Z', b'h', ..] => return Err(OpenProblem::Packed("bzip2", "bzip2 -d")),
            _ => Self::Plain(file),
        })
    }

    pub(super) fn compression(&self) -> Compression {
        match self {
            Self::Plain(_) => Compression::None,
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd(_) => Compression::Zstd,
        }
    }

    /// Writes the next bytes into `space`; 0 at the end.
    pub(super) fn read(&mut self, space: &mut [u8]) -> Result<usize, DamageKind> {
        loop {
            let read = match self {
                Self::Plain(file) => file.read(space),
                Self::Gzip(file) => file.read(space),
                Self::Zstd(file) => file.read(space),
            };
            match read {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(&error)),
            }
        }
    }

    /// How many bytes of the file have been used.
    pub(super) fn file_offset(&self) -> u64 {
        self.file().used
    }

    fn file(&self) -> &Counted {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.get_ref(),
            Self::Zstd(file) => file.get_ref(),
        }
    }

    fn fault(&self, error: &io::Error) -> DamageKind {
        if self.file().failed {
            DamageKind::Io(error.to_string())
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            DamageKind::Truncated
        } else {
            DamageKind::Corrupt(error.to_string())
        }
    }
}

/// A buffered file that counts what was taken from it and remembers whether reading itself failed.
pub(super) struct Counted {
    file: BufReader<Box<dyn Read + Send>>,
    used: u64,
    failed: bool,
}

impl Counted {
    fn new(file: Box<dyn Read + Send>) -> Self {
        Self { file: BufReader::with_capacity(64 << 10, file), used: 0, failed: false }
    }

    /// The file's first bytes, left in place. Fewer than six come when the file is shorter, or
    /// when it is a pipe that gave less at first.
    fn first_bytes(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.file.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.file.buffer())
    }
}

impl Read for Counted {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(space).inspect_err(|error| {
            self.failed = error.kind() != io::ErrorKind::Interrupted;
        })?;
        self.used += count as u64;
        Ok(count)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf().inspect_err(|error| {
            self.failed = error.kind() != io::ErrorKind::Interrupted;
        })
    }

    fn consume(&mut self, count: usize) {
        self.used += count as u64;
        self.file.consume(count);
    }
}
