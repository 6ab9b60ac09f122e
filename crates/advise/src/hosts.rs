//! The hosts for which pages were requested, if the log names them. Several hosts may be several
//! applications, and a concurrency limit belongs to one application.
//!
//! Clients choose the name of the host, so the list is bounded. When the list is full, a new host
//! replaces the host with the fewest pages and takes over that host's counts. A host that has more
//! than a thirty-second of all pages is therefore never missed (Metwally, Agrawal and El Abbadi
//! 2005, Space-Saving).

use serde::Serialize;

/// The maximum number of hosts that are counted.
const MOST: usize = 32;
/// The minimum share of the pages, or of their total service time, of a host that is named to the
/// operator.
const NAMED_HOST_SHARE: f64 = 0.1;
/// The maximum length of a host name in bytes (RFC 1035 §2.3.4).
const LONGEST: usize = 253;

/// One host of a log that names several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// The name in lower case, without a port and without `www.`.
    pub name: String,
    /// The host's share of all requests for pages.
    pub share: f64,
    /// The host's share of the total service time of all pages; 0 if the log has no durations.
    pub of_time: f64,
}

/// The number of pages, and their total service time, by host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    known: Vec<Known>,
    all: Counts,
}

#[derive(Clone, Debug, Default)]
struct Known {
    name: String,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    pages: u64,
    seconds: f64,
}

impl Counts {
    fn add(&mut self, seconds: f64) {
        self.pages += 1;
        self.seconds += seconds;
    }
}

impl Hosts {
    /// Counts a page of a host with its service time in seconds. A name that is not a host is
    /// ignored.
    pub(crate) fn add(&mut self, host: &str, seconds: f64) {
        let Some(name) = name(host) else { return };
        self.all.add(seconds);
        let known = self.known.iter().position(|known| known.name.eq_ignore_ascii_case(name));
        let at = known.unwrap_or_else(|| self.enter(name));
        self.known[at].counts.add(seconds);
    }

    /// Adds a new host to the list and returns its index. If the list is full, the new host
    /// replaces the host with the fewest pages and takes over that host's counts.
    fn enter(&mut self, name: &str) -> usize {
        let at = if self.known.len() < MOST {
            self.known.push(Known::default());
            self.known.len() - 1
        } else {
            (0..MOST).min_by_key(|at| self.known[*at].counts.pages).unwrap_or(0)
        };
        let stored = &mut self.known[at].name;
        stored.clear();
        stored.push_str(name);
        stored.make_ascii_lowercase();
        at
    }

    /// Returns the hosts with at least a tenth of the pages or of their service time, the one with
    /// most pages first. Returns an empty list if there is only one such host.
    pub(crate) fn several(&self) -> Vec<Host> {
        let host = |Known { name, counts }: &Known| Host {
            name: name.clone(),
            share: counts.pages as f64 / self.all.pages as f64,
            of_time: counts.seconds / self.all.seconds.max(f64::MIN_POSITIVE),
        };
        let mut hosts: Vec<Host> = self.known.iter().map(host).collect();
        hosts.retain(|host| host.share.max(host.of_time) >= NAMED_HOST_SHARE);
        hosts.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        if hosts.len() > 1 { hosts } else { Vec::new() }
    }
}

/// Returns a host name without its port and without `www.`, because the names with and without
/// `www.` mostly belong to one application. Returns `None` if the text is not a host name.
fn name(host: &str) -> Option<&str> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let bare =
        host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let is_www = bare.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."));
    let bare = if is_www { &bare[4..] } else { bare };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    ((1..=LONGEST).contains(&bare.len()) && bare.bytes().all(is_plain)).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &Hosts) -> Vec<String> {
        hosts.several().into_iter().map(|host| host.name).collect()
    }

    #[test]
    fn a_host_is_one_with_and_without_its_port_and_www() {
        for (host, expected) in [
            ("WWW.a.example:8080", Some("a.example")),
            ("a.example", Some("a.example")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("www.", None),
            ("", None),
            ("a b", None),
            ("a\u{1b}[2J", None),
            ("é", None),
        ] {
            assert_eq!(name(host).map(str::to_lowercase).as_deref(), expected, "{host}");
        }
        assert_eq!(name(&"a".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn hosts_are_several_if_two_have_much_of_the_pages_or_of_the_time() {
        let mut hosts = Hosts::default();
        for _ in 0..95 {
            hosts.add("shop.example", 0.01);
            hosts.add("www.Shop.example:443", 0.01);
        }
        (0..10).for_each(|_| hosts.add("blog.example", 0.01));
        assert_eq!(names(&hosts), [""; 0], "one host is not several");
        (0..10).for_each(|_| hosts.add("reports.example", 1.0));
        assert_eq!(names(&hosts), ["shop.example", "reports.example"]);
        assert!((hosts.several()[1].share - 10.0 / 210.0).abs() < 1e-9);
    }

    #[test]
    fn any_number_of_hosts_takes_no_more_memory_and_hides_none() {
        let mut hosts = Hosts::default();
        for number in 0..100_000 {
            hosts.add(&format!("x{number}.example"), 0.0);
            if number % 5 == 0 {
                hosts.add("a.example", 0.0);
            }
            if number % 6 == 0 {
                hosts.add("b.example", 0.0);
            }
        }
        assert_eq!(names(&hosts), ["a.example", "b.example"]);
        assert_eq!(hosts.known.len(), MOST);
    }
}
