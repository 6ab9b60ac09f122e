//! Opens a log file that may be compressed with gzip, as rotated logs are.
//!
//! Compression is recognised by the first bytes of the file and not by its name. A file is
//! decompressed while it is read, through a window of 32 KiB, and [`super::LONGEST`] bounds the
//! length of a line. So a decompression bomb costs time but no memory. If a compressed file has
//! several members, they are read one after the other.
//!
//! Source: RFC 1952 (§2.2 members, §2.3.1 magic bytes).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The size of the read buffer in bytes.
const PIECE: usize = 1 << 18;

/// The magic bytes ID1 and ID2 with which a file of gzip begins.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens the log file at `path`, compressed or not.
///
/// # Errors
/// Returns an error if the file cannot be opened or its first bytes cannot be read. Errors inside a
/// compressed file appear later, when the content is read.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    unpacked(BufReader::with_capacity(PIECE, File::open(path)?))
}

/// Returns a reader of the content of `reader`, which is decompressed if necessary.
///
/// # Errors
/// Returns an error if the first bytes cannot be read.
pub fn unpacked<'a>(
    mut reader: impl BufRead + Send + 'a,
) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    let beginning = reader.fill_buf()?;
    // A pipe may have delivered only one byte. The first magic byte is sufficient then, because no
    // line begins with this control character.
    let known = beginning.len().clamp(1, MAGIC.len());
    if beginning.starts_with(&MAGIC[..known]) {
        return Ok(Box::new(BufReader::with_capacity(PIECE, MultiGzDecoder::new(reader))));
    }
    Ok(Box::new(reader))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::{Flaw, LONGEST, Lines};
    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn lines(bytes: &[u8]) -> io::Result<Vec<Result<Vec<u8>, Flaw>>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("access.log");
        std::fs::write(&path, bytes)?;
        let mut lines = Lines::new(open(&path)?);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line()? {
            all.push(line.map(<[u8]>::to_vec));
        }
        Ok(all)
    }

    #[test]
    fn a_packed_file_has_the_lines_that_were_packed() {
        let plain = b"one\ntwo\nlast";
        let expected = lines(plain).unwrap();
        assert_eq!(expected.len(), 3);
        assert_eq!(lines(&packed(plain)).unwrap(), expected);
        let members = [packed(b"one\nt"), packed(b"wo\nlast")].concat();
        assert_eq!(lines(&members).unwrap(), expected);
        assert_eq!(lines(b"").unwrap(), []);
    }

    #[test]
    fn a_pipe_may_give_a_byte_at_a_time() {
        let bytes = packed(b"one\n");
        let mut lines = Lines::new(unpacked(BufReader::with_capacity(1, &bytes[..])).unwrap());
        assert_eq!(lines.next_line().unwrap(), Some(Ok(&b"one"[..])));
    }

    #[test]
    fn a_bomb_is_one_line_that_is_too_long() {
        let bomb = packed(&vec![b'x'; 64 << 20]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(lines(&bomb).unwrap(), [Err(Flaw::TooLong)]);
        let longest = vec![b'x'; LONGEST];
        assert_eq!(lines(&packed(&longest)).unwrap(), [Ok(longest)]);
    }

    #[test]
    fn what_is_broken_inside_is_an_error_and_no_end() {
        let whole = packed(b"one\ntwo\n");
        for length in 2..whole.len() {
            assert!(lines(&whole[..length]).is_err(), "{length} bytes of it");
        }
        let mut flipped = whole.clone();
        let last = flipped.len() - 5;
        flipped[last] ^= 1;
        assert!(lines(&flipped).is_err());
        assert!(open(Path::new("/nowhere/at/all")).is_err());
    }
}
