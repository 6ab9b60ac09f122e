//! The level that the gateway says a request has: the signed field `Bywash-Level`.
//!
//! Whoever can reach the application can write a field. So the gateway signs it (`[levels]` in its file), with keys that
//! the application has as well, and removes what clients write. What is forged, old or malformed names no level: a request
//! that says so is to be treated as one that says nothing, and counted.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_token::{KeyFault, LevelKeys, LevelRefusal, Moment, Secrets, read_level};
use bywash_units::Span;

/// A level is signed when its request is sent on: a minute is for clocks that differ.
const LIFETIME: Span = Span::from_secs(60);

/// The keys of the gateway that speaks of levels.
#[derive(Clone, Debug)]
pub struct Gateway {
    keys: LevelKeys,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        cause: std::io::Error,
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
    /// If it cannot be read, or holds no keys.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        /// Two keys are some hundred bytes.
        const MOST: u64 = 64 << 10;
        let shown = || path.display().to_string();
        let read = || {
            let mut text = String::new();
            let file = std::fs::File::open(path)?;
            std::io::Read::read_to_string(&mut std::io::Read::take(file, MOST), &mut text)?;
            Ok(text)
        };
        let text = read().map_err(|cause| GatewayError::Unreadable { path: shown(), cause })?;
        let secrets = Secrets::parse(&text);
        let secrets = secrets.map_err(|cause| GatewayError::NoKeys { path: shown(), cause })?;
        Ok(Self { keys: LevelKeys::new(&secrets) })
    }

    /// The level that the field names. Whether the pool has such a level, [`Pool::request`](crate::Pool::request) says.
    ///
    /// # Errors
    ///
    /// Why it names none.
    pub fn level<'t>(&self, field: &'t [u8]) -> Result<&'t str, LevelRefusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        read_level(&self.keys, field, now, LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use bywash_token::{Secret, sign_level};

    use super::*;

    fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    }

    #[test]
    fn what_the_gateway_signed_is_believed_for_a_minute_and_nothing_else_is() {
        let secrets = Secrets::fresh(Secret::from_bytes([7; 32]));
        let file = std::env::temp_dir().join(format!("level-keys-{}", std::process::id()));
        std::fs::write(&file, secrets.to_text()).unwrap();
        let gateway = Gateway::read(&file);
        std::fs::remove_file(&file).unwrap();
        let gateway = gateway.unwrap();
        let signed = |secret: u8, at: u64| {
            let keys = LevelKeys::new(&Secrets::fresh(Secret::from_bytes([secret; 32])));
            sign_level(&keys, "high", Moment::from_millis(at)).unwrap().as_bytes().to_vec()
        };
        assert_eq!(gateway.level(&signed(7, now())), Ok("high"));
        assert_eq!(gateway.level(&signed(8, now())), Err(LevelRefusal::Forged));
        assert_eq!(gateway.level(&signed(7, now() - 100_000)), Err(LevelRefusal::TooOld));
        assert_eq!(gateway.level(b"high"), Err(LevelRefusal::Malformed));
        let missing = Gateway::read(&file).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read "), "{missing}");
    }
}
