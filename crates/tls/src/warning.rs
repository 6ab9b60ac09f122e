//! What is served all the same, but should be mended.
//!
//! An expired certificate is not refused: whoever reloads for another reason must not lose the
//! site over it, and clients are told by their browsers, not by us.

use std::fmt;
use std::path::PathBuf;

/// Something to mend in a configuration that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Clients refuse it.
    Expired {
        /// The certificate's file.
        path: PathBuf,
        /// Whole days since.
        days: u64,
    },
    /// Clients will refuse it soon.
    ExpiresSoon {
        /// The certificate's file.
        path: PathBuf,
        /// Whole days until then.
        days: u64,
    },
    /// Clients refuse it as yet.
    NotYetValid {
        /// The certificate's file.
        path: PathBuf,
    },
    /// Its issuer has not meant it for servers.
    NotForServers {
        /// The certificate's file.
        path: PathBuf,
    },
    /// It names no host, so only clients that ask for none, or for an unknown one, could get it.
    NoNames {
        /// The certificate's file.
        path: PathBuf,
    },
    /// An earlier certificate with the same kind of key has the name.
    Shadowed {
        /// The certificate's file.
        path: PathBuf,
        /// The name for which it is never chosen.
        name: String,
    },
    /// Whoever can log in can take the key.
    KeyReadable {
        /// The key's file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired { path, days } => {
                write!(f, "{} expired {days} days ago: renew it", path.display())
            }
            Self::ExpiresSoon { path, days } => {
                write!(f, "{} expires in {days} days: renew it", path.display())
            }
            Self::NotYetValid { path } => {
                write!(f, "{} is not valid yet: check it and the clock", path.display())
            }
            Self::NotForServers { path } => write!(
                f,
                "{} is not meant for servers (extended key usage): clients may refuse it",
                path.display()
            ),
            Self::NoNames { path } => write!(
                f,
                "{} names no host (subject alternative names): browsers refuse it",
                path.display()
            ),
            Self::Shadowed { path, name } => write!(
                f,
                "{} is never chosen for {name}: an earlier certificate has that name",
                path.display()
            ),
            Self::KeyReadable { path, mode } => write!(
                f,
                "{} is readable by everybody (mode {mode:04o}): chmod o-rwx",
                path.display()
            ),
        }
    }
}
