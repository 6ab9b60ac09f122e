//! The URL of the hop in front, for `doctor`.

use std::str::FromStr;

use bywash_config::{Endpoint, Scheme, Server};
use http::Uri;

/// The URL of the hop's test location, which leads to the doctor's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) server: Server,
    pub(crate) target: String,
}

/// Parses `http://HOST[:PORT]/PATH` or `https://HOST[:PORT]/PATH`.
impl FromStr for Front {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "write http://HOST:PORT/PATH or https://HOST/PATH";
        let url: Uri = text.parse().map_err(|_| SHAPE)?;
        let scheme = match url.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(SHAPE),
        };
        let host = url.host().filter(|host| !host.is_empty()).ok_or(SHAPE)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let port = url.port_u16().unwrap_or(scheme.port());
        let target = url.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Self { server: Server { scheme, endpoint: Endpoint::Tcp { host, port } }, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_of_a_hop_is_refused() {
        for text in ["", "shop.example", "/doctor/", "ftp://shop.example/", "http://", "http:///a"]
        {
            assert!(text.parse::<Front>().is_err(), "{text}");
        }
    }
}
