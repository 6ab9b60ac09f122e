//! Reads certificates and keys from PEM files (RFC 7468). The errors say what a file contains
//! instead.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;

/// The maximum size in bytes of a file that is read. The authorities of a system take a quarter of
/// a MiB, and a chain a few KiB.
const LARGEST: u64 = 4 << 20;

/// The first byte of every certificate and key in DER (X.690), the tag of a SEQUENCE.
const SEQUENCE: u8 = 0x30;

/// Returns all certificates of a file, at least one. Fails if there is none.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?.text;
    let found = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|reason| TlsError::Damaged { path: path.into(), reason })?;
    if !found.is_empty() {
        return Ok(found);
    }
    Err(match text.first() {
        Some(&SEQUENCE) => TlsError::Der { path: path.into() },
        _ => TlsError::NoCertificate { path: path.into() },
    })
}

/// A private key, and the permission bits of its file.
pub(crate) struct Key {
    pub(crate) der: PrivateKeyDer<'static>,
    pub(crate) mode: u32,
}

/// Returns the first private key of a file, with the file's permission bits.
pub(crate) fn key(path: &Path) -> Result<Key, TlsError> {
    let Contents { text, mode } = read(path)?;
    if encrypted(&text) {
        return Err(TlsError::KeyEncrypted { path: path.into() });
    }
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(der) => Ok(Key { der, mode }),
        Err(pem::Error::NoItemsFound) if text.first() == Some(&SEQUENCE) => {
            Err(TlsError::Der { path: path.into() })
        }
        Err(pem::Error::NoItemsFound) => Err(TlsError::NoKey { path: path.into() }),
        Err(reason) => Err(TlsError::Damaged { path: path.into(), reason }),
    }
}

/// Returns whether a private key is encrypted. The label says so (PKCS #8), or a header of the
/// older format (RFC 1421 section 4.6.1.1).
fn encrypted(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}

struct Contents {
    text: Vec<u8>,
    mode: u32,
}

fn read(path: &Path) -> Result<Contents, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    // The mode is that of the opened file. Another file may have taken its name meanwhile.
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        return Err(TlsError::TooLarge { path: path.into() });
    }
    Ok(Contents { text, mode })
}
