//! The resolved configuration of a fleet of gateways.

use std::net::SocketAddr;
use std::path::PathBuf;

use bywash_token::FleetKeys;

/// The fleet that this gateway belongs to: gateways in front of the same application, which share
/// its slots.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The name of this gateway, which is one of `gateways`.
    pub name: String,
    /// The names of all gateways of the fleet, without duplicates.
    pub gateways: Vec<String>,
    /// The address at which each of `gateways` listens while its process lives, in the same order;
    /// empty if they listen nowhere.
    pub liveness: Vec<SocketAddr>,
    /// The URLs of the NATS servers, at least one.
    pub servers: Vec<String>,
    /// The first part of the subjects on which the gateways send messages.
    pub subject: String,
    /// The keys that sign the messages.
    pub keys: FleetKeys,
    /// How the gateway proves to the NATS servers who it is; `None` if they do not ask.
    pub credentials: Option<Credentials>,
    /// The path of the certificates by which the gateway recognises the NATS servers; `None` for
    /// those of the machine.
    pub ca_file: Option<PathBuf>,
}

impl Fleet {
    /// Returns the address at which this gateway listens while its process lives.
    pub fn own_liveness(&self) -> Option<SocketAddr> {
        let own = self.gateways.iter().position(|name| *name == self.name)?;
        self.liveness.get(own).copied()
    }
}

/// How a gateway proves to NATS servers who it is.
///
/// The files are not opened here. They are read when the gateway connects, so that a new password
/// needs no restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password.
    Password {
        /// The name of the user.
        user: String,
        /// The path of the file with the password, on one line.
        file: PathBuf,
    },
    /// A key pair of NATS. The file at this path has its seed, on one line.
    Nkey(PathBuf),
}
