//! The number of processor cores, as an argument of the command line.

use std::net::IpAddr;

use bywash_config::{Config, Endpoint};

/// Parses a number of cores, or `local` for the number of cores of this machine.
pub(super) fn read(text: &str) -> Result<u32, String> {
    if text == "local" {
        return local();
    }
    let cores = text.parse().ok().filter(|cores| (1..=10_000).contains(cores));
    cores.ok_or_else(|| "write a number from 1 to 10000, or `local`".to_owned())
}

/// Returns the number of cores of this machine that this process may use.
fn local() -> Result<u32, String> {
    let cores = std::thread::available_parallelism().map_err(|error| error.to_string())?;
    u32::try_from(cores.get()).map_err(|error| error.to_string())
}

/// Returns the number of cores of the machine that runs the application. It is `named`, the number
/// that the operator named. Otherwise it is the number of cores of this machine, if the
/// application's URL leads to it. Returns `None` if both are unknown.
pub(crate) fn of(named: Option<u32>, upstream: &str) -> Option<u32> {
    named.or_else(|| local().ok().filter(|_| is_here(upstream)))
}

/// Returns whether the application's URL leads to this machine. Returns false for an invalid URL.
fn is_here(upstream: &str) -> bool {
    let least = format!("version = 1\nupstream.server = {upstream:?}\n");
    let Ok((config, _)) = Config::parse(&least, upstream) else { return false };
    config.upstream.servers.iter().all(|server| match &server.endpoint {
        Endpoint::Unix(_) => true,
        Endpoint::Tcp { host, .. } => {
            let ip = host.parse::<IpAddr>().map(|ip| ip.to_canonical());
            host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_number_or_those_of_this_machine() {
        assert_eq!(read("2"), Ok(2));
        assert!(read("local").is_ok_and(|cores| cores > 0));
        for wrong in ["", "0", "-1", "10001", "2.5", "Local"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cores_of_this_machine_count_for_an_application_on_it() {
        for here in [
            "http://127.0.0.1:3000",
            "http://127.1.2.3",
            "http://LocalHost",
            "https://[::1]:8443",
            "http://[::ffff:127.0.0.1]:3000",
            "unix:/run/app.sock",
        ] {
            assert_eq!(of(None, here), local().ok(), "{here}");
        }
        for elsewhere in [
            "http://10.0.0.1:3000",
            "http://localhost.example.com",
            "http://127.example.com:3000",
            "http://example.com/http://127.0.0.1",
            "127.0.0.1:3000",
            "",
        ] {
            assert_eq!(of(None, elsewhere), None, "{elsewhere}");
        }
        assert_eq!(of(Some(7), "http://127.0.0.1:3000"), Some(7));
    }
}
