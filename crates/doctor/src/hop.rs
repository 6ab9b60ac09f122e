//! Identifies the product of the hop in front by its answers. For each product, names the setting
//! with which the hop closes its connection when the client has left.
//!
//! The behaviour of each product was observed with `scripts/fronts`, which runs `bywash doctor
//! --front` with each product as the hop (docs/how-to/systemd-and-containers.md).

use bywash_message::{Fields, Name};

/// A product that stands in front of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    Nginx,
    Apache,
    Varnish,
    Caddy,
    Envoy,
    /// A hop whose answers do not name the product, such as HAProxy.
    Unnamed,
}

impl Hop {
    /// Identifies the product by the header fields of its answer.
    pub(super) fn of(answer: &Fields) -> Self {
        let says = |name: Name, word: &str| {
            answer
                .all(name)
                .any(|value| String::from_utf8_lossy(value).to_ascii_lowercase().contains(word))
        };
        // Varnish forwards the `Server` field of the server behind it, so it is checked first.
        if says(Name::Via, "varnish") || answer.named(b"X-Varnish").next().is_some() {
            return Self::Varnish;
        }
        let servers = [
            ("nginx", Self::Nginx),
            ("openresty", Self::Nginx),
            ("apache", Self::Apache),
            ("caddy", Self::Caddy),
            ("envoy", Self::Envoy),
        ];
        let found = servers.into_iter().find(|(word, _)| says(Name::Server, word));
        found.map_or(Self::Unnamed, |(_, hop)| hop)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "Apache httpd",
            Self::Varnish => "Varnish",
            Self::Caddy => "Caddy",
            Self::Envoy => "Envoy",
            Self::Unnamed => "a hop that does not name itself (HAProxy does not)",
        }
    }

    /// Returns the setting that makes the product close its connection when its client has left, as
    /// text.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Nginx => {
                "set proxy_ignore_client_abort off (the default), and no proxy_cache or \
                 proxy_store in the location: nginx always finishes a response that it may store"
            }
            Self::Apache => {
                "mod_proxy has no setting for it: use nginx, HAProxy or Caddy instead, or let \
                 clients connect to bywash itself (listen.https)"
            }
            Self::Varnish => {
                "use `return (pipe);` in vcl_recv for requests that are not cached, or send them \
                 past Varnish: it finishes a fetch even if no client waits"
            }
            Self::Caddy => {
                "Caddy passes closes on by default: look for request_buffers, flush_interval or \
                 another hop behind it"
            }
            Self::Envoy => {
                "Envoy passes closes on by default: look for a retry or hedge policy, or another \
                 hop behind it"
            }
            Self::Unnamed => {
                "HAProxy before 3.3: set `option abortonclose` in the backend; any other hop: use \
                 its setting for client aborts, or a hop that has one (nginx, HAProxy, Caddy)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(fields: &[(&str, &str)]) -> Hop {
        let mut answer = Fields::new();
        for (name, value) in fields {
            answer.push(name.as_bytes(), value.as_bytes());
        }
        Hop::of(&answer)
    }

    #[test]
    fn a_hop_is_known_by_what_it_says_of_itself() {
        assert_eq!(seen(&[("server", "nginx/1.22.1")]), Hop::Nginx);
        assert_eq!(seen(&[("Server", "Apache/2.4.62 (Debian)")]), Hop::Apache);
        assert_eq!(seen(&[("Via", "1.1 varnish (Varnish/7.1)")]), Hop::Varnish);
        assert_eq!(seen(&[("Server", "nginx"), ("X-Varnish", "5 3")]), Hop::Varnish);
        assert_eq!(seen(&[("Server", "Caddy")]), Hop::Caddy);
        assert_eq!(seen(&[("server", "envoy")]), Hop::Envoy);
        assert_eq!(seen(&[("Server", "gunicorn")]), Hop::Unnamed);
        assert_eq!(seen(&[]), Hop::Unnamed);
    }
}
