//! Networks as operators write them: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
//!
//! A client that connects over IPv4 to a dual-stack listener has an IPv4-mapped IPv6 address (RFC
//! 4291 §2.5.5.2), which an operator regards as IPv4. So networks and addresses are both converted
//! to IPv4 where possible. A network of one family contains no address of the other.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address and the number of its leading bits that count (the prefix length). All
/// other bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// The reason why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNetwork {
    /// The text before the slash is not an address.
    #[error("it is not an IP address")]
    Address,
    /// The text after the slash is not a prefix length. The value is the maximum length for the
    /// address.
    #[error("the prefix is not a whole number from 0 to {0}")]
    Prefix(u8),
    /// The address has bits set beyond the prefix. The value is the network without these bits.
    #[error("the address has bits set beyond its prefix; the network is {0}")]
    HostBits(Network),
}

const MAPPED: u8 = 96;

impl Network {
    /// Returns whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.prefix) == self.address
    }

    /// Returns whether the network contains every address of its family (prefix length 0).
    pub const fn is_everything(&self) -> bool {
        self.prefix == 0
    }

    /// Returns the network with this prefix length that contains an address. The prefix must not be
    /// longer than the address.
    fn around(address: IpAddr, prefix: u8) -> Self {
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), mapped @ IpAddr::V4(_)) if prefix >= MAPPED => {
                Self { address: masked(mapped, prefix - MAPPED), prefix: prefix - MAPPED }
            }
            _ => Self { address: masked(address, prefix), prefix },
        }
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns the address with all bits beyond the prefix set to zero.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    // A shift by the whole width makes `checked_shl` return `None`. All bits are then set to zero.
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NoNetwork::Address)?;
        let width = width(address);
        let prefix = match prefix {
            Some(prefix) => bits(prefix, width).ok_or(NoNetwork::Prefix(width))?,
            None => width,
        };
        let network = Self::around(address, prefix);
        if masked(address, prefix) == address {
            Ok(network)
        } else {
            Err(NoNetwork::HostBits(network))
        }
    }
}

/// Parses a prefix length of at most `width` bits. Only digits are accepted; Rust's parser would
/// accept `+8` as well.
fn bits(text: &str, width: u8) -> Option<u8> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|bits| is_plain && *bits <= width)
}

/// Writes the network as operators do. A network of a single address is written without the prefix
/// length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, prefix } = self;
        if *prefix == width(*address) { address.fmt(f) } else { write!(f, "{address}/{prefix}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn has(network_text: &str, address: &str) -> bool {
        network(network_text).contains(address.parse().unwrap())
    }

    #[test]
    fn an_address_lies_in_the_networks_that_share_its_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("192.0.2.128/25", "192.0.2.128", "192.0.2.127"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "ffff::", "127.0.0.1"),
        ] {
            assert!(has(network, inside) && !has(network, outside), "{network}");
        }
    }

    #[test]
    fn an_ipv4_client_of_a_listener_for_both_families_is_an_ipv4_client() {
        assert!(has("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!has("::/0", "::ffff:10.1.2.3"));
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
        assert!(has("::ffff:10.0.0.0/104", "10.1.2.3"));
    }

    #[test]
    fn bits_beyond_the_prefix_are_refused_with_the_network() {
        for (text, meant) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("192.0.2.1/0", "0.0.0.0/0"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ] {
            assert_eq!(text.parse(), Err::<Network, _>(NoNetwork::HostBits(network(meant))));
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "/", "10.0.0.0/", "10.0.0.0/33", "::/129", "10/8", "10.0.0.0/+8", "a/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        for text in ["10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/ 8", "10.0.0.0/999", "[::1]"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_is_written_as_it_is_read() {
        for text in ["10.0.0.0/8", "192.0.2.1", "::1", "2001:db8::/32", "0.0.0.0/0", "::/0"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("192.0.2.1/32").to_string(), "192.0.2.1");
    }
}
