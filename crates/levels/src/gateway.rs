//! Reads the service level of a request from the signed header field `Bywash-Level` of the gateway.
//!
//! Any client that can reach the application can write a header field. Therefore the gateway signs
//! the field with keys that the application shares (`[levels]` in the gateway's configuration). The
//! gateway also removes such fields of clients. A forged, old or malformed field names no level.
//! Treat a request with such a field as one without the field, and count it.
//!
//! **Keys can be exchanged while gateway and application run** (`bywash token-keys --rotate`). A
//! signature that matches none of the keys may have been made with a new key, so the key file is
//! then read again. This happens at most once a second, because any client can write a forged
//! field.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bywash_files::Unreadable;
use bywash_token::{KeyFileError, LevelKeys, LevelRefusal, Secrets, UnixTime, read_level};
use bywash_units::TimeSpan;
use parking_lot::{Mutex, RwLock};

/// The maximum age of a valid signature. The gateway signs a level when it forwards the request, so
/// a minute only has to cover differences between clocks.
const LIFETIME: TimeSpan = TimeSpan::from_secs(60);

/// The minimum time between two reads of the key file.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The keys by which an application checks the signatures of a gateway. Clones share the keys.
#[derive(Clone, Debug)]
pub struct Gateway {
    file: Arc<KeyFile>,
}

#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    keys: RwLock<LevelKeys>,
    /// The time at which the key file was last read.
    read: Mutex<Instant>,
}

/// The reason why an application has no keys of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The key file cannot be read, or every user of the machine may read it.
    #[error("cannot use {path}: {cause}")]
    Unreadable {
        /// The path of the key file.
        path: String,
        /// The reason why the file cannot be used.
        cause: Unreadable,
    },
    /// The key file contains no keys.
    #[error("{path}: {cause}")]
    NoKeys {
        /// The path of the key file.
        path: String,
        /// The mistake in the key file.
        cause: KeyFileError,
    },
}

impl Gateway {
    /// The name of the header field with the signed level of a request, in lower case.
    pub const FIELD: &'static str = bywash_token::level::FIELD;

    /// Reads the key file that the gateway uses (`levels.key_file`), as `bywash token-keys` writes
    /// it.
    ///
    /// # Errors
    ///
    /// If the key file cannot be read, every user may read it, or it contains no keys.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        let file = KeyFile {
            path: path.to_owned(),
            keys: RwLock::new(keys(path)?),
            read: Mutex::new(Instant::now()),
        };
        Ok(Self { file: Arc::new(file) })
    }

    /// Checks the signature of a field, and returns the level that the field names.
    /// [`Pool::request`](crate::Pool::request) checks whether the pool has this level.
    ///
    /// # Errors
    ///
    /// The reason for which the field names no level.
    pub fn level<'t>(&self, field: &'t [u8]) -> Result<&'t str, LevelRefusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = UnixTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        let read = || read_level(&self.file.keys.read(), field, now, LIFETIME);
        match read() {
            Err(LevelRefusal::Forged) => {
                // Another thread may have read the new keys while this one waited for the lock.
                self.file.read_again();
                read()
            }
            read => read,
        }
    }
}

impl KeyFile {
    /// Reads the key file again, unless it was read less than [`READ_INTERVAL`] ago. If the file
    /// cannot be used, the present keys stay.
    fn read_again(&self) {
        let mut read = self.read.lock();
        if read.elapsed() < READ_INTERVAL {
            return;
        }
        *read = Instant::now();
        if let Ok(keys) = keys(&self.path) {
            *self.keys.write() = keys;
        }
    }
}

fn keys(path: &Path) -> Result<LevelKeys, GatewayError> {
    let shown = || path.display().to_string();
    let text = bywash_files::secret(path);
    let text = text.map_err(|cause| GatewayError::Unreadable { path: shown(), cause })?;
    let secrets = Secrets::parse(&text);
    let secrets = secrets.map_err(|cause| GatewayError::NoKeys { path: shown(), cause })?;
    Ok(LevelKeys::new(&secrets))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use bywash_token::{Secret, sign_level};

    use super::*;

    fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    }

    fn secrets(secret: u8) -> Secrets {
        Secrets::fresh(Secret::from_bytes([secret; 32]))
    }

    fn signed(secret: u8, at: u64) -> Vec<u8> {
        let keys = LevelKeys::new(&secrets(secret));
        sign_level(&keys, "high", UnixTime::from_millis(at)).unwrap().as_bytes().to_vec()
    }

    /// Writes a key file with this key, which only its owner may read.
    fn key_file(folder: &tempfile::TempDir, secret: u8) -> PathBuf {
        let path = folder.path().join("keys");
        fs::write(&path, secrets(secret).to_text()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    #[test]
    fn what_the_gateway_signed_is_believed_for_a_minute_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::read(&key_file(&folder, 7)).unwrap();
        assert_eq!(gateway.level(&signed(7, now())), Ok("high"));
        assert_eq!(gateway.level(&signed(8, now())), Err(LevelRefusal::Forged));
        assert_eq!(gateway.level(&signed(7, now() - 100_000)), Err(LevelRefusal::TooOld));
        assert_eq!(gateway.level(b"high"), Err(LevelRefusal::Malformed));
    }

    #[test]
    fn a_key_that_has_come_since_is_found_and_a_file_that_cannot_be_used_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(&folder, 7);
        let gateway = Gateway::read(&path).unwrap();
        let rested =
            || *gateway.file.read.lock() = Instant::now().checked_sub(READ_INTERVAL).unwrap();
        fs::write(&path, "no keys").unwrap();
        rested();
        assert_eq!(gateway.level(&signed(8, now())), Err(LevelRefusal::Forged));
        assert_eq!(gateway.level(&signed(7, now())), Ok("high"));
        key_file(&folder, 8);
        assert_eq!(gateway.level(&signed(8, now())), Err(LevelRefusal::Forged), "it rests");
        rested();
        assert_eq!(gateway.level(&signed(8, now())), Ok("high"));
        assert_eq!(gateway.level(&signed(7, now())), Err(LevelRefusal::Forged));
    }

    #[test]
    fn a_file_that_every_user_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(&folder, 7);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let message = Gateway::read(&path).unwrap_err().to_string();
        assert!(message.ends_with("every user may read or write it: its mode is 644"), "{message}");
    }
}
