//! The arguments that name the gateway that a command talks to.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use bywash_config::AdminAddress;

/// Returns the admin address that commands use by default.
pub fn default_admin() -> AdminAddress {
    AdminAddress::Tcp(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7070)))
}

/// The gateway that a command talks to.
#[derive(Clone, Debug, clap::Args)]
pub struct Which {
    /// The gateway's admin listener: `ADDRESS:PORT` or `unix:/PATH`
    #[arg(long, value_name = "ADDRESS", default_value_t = default_admin(), value_parser = admin)]
    pub admin: AdminAddress,
    /// The operators' key of that gateway, if it is not where `bywash run` puts it
    #[arg(long, value_name = "FILE", env = "BYWASH_OPERATORS_KEY")]
    pub key: Option<PathBuf>,
}

/// Parses an address. A URL with an address is accepted too, because operators paste the URLs that
/// `bywash run` prints.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let number = bare.replace("localhost:", "127.0.0.1:");
    number.parse().map_err(|_| "write ADDRESS:PORT, as in 127.0.0.1:8080".to_owned())
}

/// Parses the address of an admin listener, or a URL with one.
pub fn admin(text: &str) -> Result<AdminAddress, String> {
    if text.starts_with("unix:") {
        return text.parse().map_err(str::to_owned);
    }
    address(text).map(AdminAddress::Tcp)
}
