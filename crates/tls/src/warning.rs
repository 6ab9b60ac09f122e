//! Faults that do not prevent serving, but should be corrected.
//!
//! An expired certificate is not an error: an operator who reloads for another reason must not lose
//! the site because of it, and browsers warn their users.

use std::fmt;
use std::path::PathBuf;

/// A fault of a configuration that can be used nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The certificate has expired: clients reject it.
    Expired {
        /// The certificate's file.
        path: PathBuf,
        /// The number of whole days since the certificate expired.
        days: u64,
    },
    /// The certificate expires soon, and clients will reject it then.
    ExpiresSoon {
        /// The certificate's file.
        path: PathBuf,
        /// The number of whole days until the certificate expires.
        days: u64,
    },
    /// The certificate is not valid yet: clients still reject it.
    NotYetValid {
        /// The certificate's file.
        path: PathBuf,
    },
    /// The certificate's issuer has not issued it for servers.
    NotForServers {
        /// The certificate's file.
        path: PathBuf,
    },
    /// The certificate names no host, so only clients that ask for no name, or an unknown one,
    /// could get it.
    NoNames {
        /// The certificate's file.
        path: PathBuf,
    },
    /// An earlier certificate with the same kind of key has the same name, so this one is never
    /// chosen for the name.
    Shadowed {
        /// The certificate's file.
        path: PathBuf,
        /// The name for which the certificate is never chosen.
        name: String,
    },
    /// Every user who can log in can read the key.
    KeyReadable {
        /// The key's file.
        path: PathBuf,
        /// The permission bits of the key's file.
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
                "{} is not meant for servers (extended key usage): clients may reject it",
                path.display()
            ),
            Self::NoNames { path } => write!(
                f,
                "{} names no host (subject alternative names): browsers reject it",
                path.display()
            ),
            Self::Shadowed { path, name } => write!(
                f,
                "{} is never chosen for {name}: an earlier certificate has that name",
                path.display()
            ),
            Self::KeyReadable { path, mode } => write!(
                f,
                "{} is readable by all users (mode {mode:04o}): chmod o-rwx",
                path.display()
            ),
        }
    }
}
