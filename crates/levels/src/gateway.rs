//! The level that the gateway says a request has: the signed field `Bywash-Level`.
//!
//! Whoever can reach the application can write a field. So the gateway signs it (`[levels]` in its file), with keys that
//! the application has as well, and removes what clients write. What is forged, old or malformed names no level: a request
//! that says so is to be treated as one that says nothing, and counted.
//!
//! **Keys are exchanged while both run** (`bywash token-keys --rotate`): a signature that is none of ours may be of a key
//! that has come since, so the file is read again then, at most once a second, as everybody can write what is forged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bywash_files::Unreadable;
use bywash_token::{KeyFault, LevelKeys, LevelRefusal, Moment, Secrets, read_level};
use bywash_units::Span;
use parking_lot::{Mutex, RwLock};

/// A level is signed when its request is sent on: a minute is for clocks that differ.
const LIFETIME: Span = Span::from_secs(60);

/// The file is not read more often.
const REST: Duration = Duration::from_secs(1);

/// The keys of the gateway that speaks of levels. Clones are the same keys.
#[derive(Clone, Debug)]
pub struct Gateway {
    file: Arc<KeyFile>,
}

#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    keys: RwLock<LevelKeys>,
    /// When it was read.
    read: Mutex<Instant>,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The file cannot be read, or every user may.
    #[error("cannot use {path}: {cause}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        cause: Unreadable,
    },
    /// It holds no keys.
    #[error("{path}: {cause}")]
    NoKeys {
        /// Which file.
        path: String,
        /// Why.
        cause: KeyFault,
    },
}

impl Gateway {
    /// The field that a request's level stands in, in lower case.
    pub const FIELD: &'static str = bywash_token::level::FIELD;

    /// Reads the gateway's `levels.key_file`, as `bywash token-keys` makes it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, every user may read it, or it holds no keys.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        let file = KeyFile {
            path: path.to_owned(),
            keys: RwLock::new(keys(path)?),
            read: Mutex::new(Instant::now()),
        };
        Ok(Self { file: Arc::new(file) })
    }

    /// The level that the field names. Whether the pool has such a level, [`Pool::request`](crate::Pool::request) says.
    ///
    /// # Errors
    ///
    /// Why it names none.
    pub fn level<'t>(&self, field: &'t [u8]) -> Result<&'t str, LevelRefusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        let read = || read_level(&self.file.keys.read(), field, now, LIFETIME);
        match read() {
            Err(LevelRefusal::Forged) => {
                // Another thread may have found the new key while this one waited for it.
                self.file.read_again();
                read()
            }
            read => read,
        }
    }
}

impl KeyFile {
    /// A file that cannot be used leaves the keys that there are.
    fn read_again(&self) {
        let mut read = self.read.lock();
        if read.elapsed() < REST {
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
        sign_level(&keys, "high", Moment::from_millis(at)).unwrap().as_bytes().to_vec()
    }

    /// A file with this key, that its owner alone may read.
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
        let rested = || *gateway.file.read.lock() = Instant::now().checked_sub(REST).unwrap();
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
        let told = Gateway::read(&path).unwrap_err().to_string();
        assert!(told.ends_with("every user may read or write it: its mode is 644"), "{told}");
    }
}
