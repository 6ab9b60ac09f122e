//! A connected client: its identity and its rights.

use bywash_lease::{Command, Holder, Refusal, Scope};

/// The proven identity of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// A user of this machine, by the number that the kernel reports.
    User(u32),
    /// The name in the certificate of a relay. If several names are in the certificate, it is the
    /// first one with rights.
    Certificate(String),
}

/// The messages that a client may send. The configuration defines them for each identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) leases: bool,
    pub(crate) stops: bool,
}

impl Rights {
    /// The rights of an identity that is not configured.
    pub(crate) const NONE: Self = Self { leases: false, stops: false };
}

/// A client connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) holder: Holder,
    pub(crate) identity: Identity,
    pub(crate) rights: Rights,
}

impl Peer {
    /// Returns the reason why the client may not send a command, with the remedy. Returns `Ok` if
    /// the client may send it.
    pub(crate) fn check(&self, command: &Command) -> Result<(), (Refusal, &'static str)> {
        let is_local = matches!(self.identity, Identity::User(_));
        let why = match command {
            // A client that may lease may also stop the work for which it holds leases.
            Command::Lease { .. }
            | Command::Release { .. }
            | Command::Stop { scope: Scope::Own, .. }
                if !self.rights.leases =>
            {
                if is_local {
                    "add this user to stopd.leases"
                } else {
                    "add a name of this relay's certificate to stopd.remote_leases"
                }
            }
            Command::Stop { scope: Scope::All, .. } if !self.rights.stops => {
                if is_local {
                    "add this user to stopd.stops"
                } else {
                    "add a name of this relay's certificate to stopd.remote_stops"
                }
            }
            _ => return Ok(()),
        };
        Err((Refusal::Forbidden, why))
    }
}
