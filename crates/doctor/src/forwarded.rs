//! Checks a request that came through the hop in front: whether the hop names its client, whether
//! it lets clients forge that name, and whether it reuses its connections.

use std::net::IpAddr;

use bywash_config::Listen;
use bywash_message::{Fields, Name, Request};
use http::Version;

use super::finding::Finding;
use super::hop::Hop;

const FIELDS: &str = "front fields";
const REUSE: &str = "front reuse";

/// The header fields that the test forges, as any client could, to see whether the hop passes them
/// on. The addresses are reserved for documentation (RFC 5737), and the names do not exist (RFC
/// 6761).
pub(super) const FORGED: [(&str, &str); 2] =
    [("X-Forwarded-For", "192.0.2.66"), ("X-Forwarded-Host", "forged.invalid")];

/// A request that came to the origin through the hop.
pub(super) struct ForwardedRequest {
    pub(super) hop: Hop,
    /// The request as the origin received it.
    pub(super) request: Request,
    /// The address from which the hop connected to the origin.
    pub(super) peer: IpAddr,
}

impl ForwardedRequest {
    /// Checks whether the gateway will learn the client's address from the hop, and whether a
    /// client can forge it.
    pub(super) fn fields(&self, listen: Option<&Listen>) -> Finding {
        let (fields, peer) = (&self.request.fields, self.peer);
        let forged = forged(fields);
        let named = [Name::XForwardedFor, Name::Forwarded]
            .into_iter()
            .find(|name| fields.has(*name) && forged != Some(name.text()));
        let trusted = listen.is_some_and(|listen| {
            listen.trusted_proxies.iter().any(|network| network.contains(peer))
        });
        let finding = match (trusted, forged, named) {
            (true, Some(name), _) => Finding::problem(
                FIELDS,
                format!(
                    "the hop connects from {peer}, is trusted, and passes {name} on as its client \
                     wrote it: clients can forge it"
                ),
                "let the hop overwrite X-Forwarded-*; examples/ shows how",
            ),
            (true, None, Some(name)) => {
                let name = name.text();
                let found = format!("the hop connects from {peer}, is trusted, and writes {name}");
                Finding::ok(FIELDS, found)
            }
            (_, _, None) => Finding::warning(
                FIELDS,
                format!(
                    "the hop connects from {peer} and does not name its client in X-Forwarded-For \
                     or Forwarded: every client has the hop's address"
                ),
                "nginx: proxy_set_header X-Forwarded-For $remote_addr; HAProxy: option forwardfor; \
                 and name the hop in listen.trusted_proxies",
            ),
            (false, _, Some(name)) => Finding::warning(
                FIELDS,
                format!(
                    "the hop writes {}, which bywash removes, because {peer} is not in \
                     listen.trusted_proxies: every client has the hop's address",
                    name.text()
                ),
                format!(
                    "set listen.trusted_proxies = [\"{peer}\"], if only the hop has that address"
                ),
            ),
        };
        finding.with("peer", peer.to_string())
    }

    /// Checks whether the hop can send several requests over one connection.
    pub(super) fn reuse(&self) -> Finding {
        let old = self.request.version == Version::HTTP_10;
        if old || !self.request.keep_alive {
            let version = if old { "HTTP/1.0" } else { "HTTP/1.1 with Connection: close" };
            return Finding::warning(
                REUSE,
                format!(
                    "the hop speaks {version} to the server behind it: a new connection for each \
                     request"
                ),
                "nginx: proxy_http_version 1.1, proxy_set_header Connection \"\", and `keepalive` in \
                 an upstream block; HAProxy: no `option httpclose`",
            );
        }
        Finding::ok(REUSE, "the hop speaks HTTP/1.1 and can reuse a connection")
    }
}

/// Returns the name of a header field that arrives as the client forged it; `None` if there is
/// none. A hop that appends its own value to the field is correct, because only the last element
/// counts.
fn forged(fields: &Fields) -> Option<&'static str> {
    let last = |name: &str| {
        let value = fields.named(name.as_bytes()).last()?;
        let word = value.rsplit(|byte| *byte == b',').next()?;
        Some(word.trim_ascii().to_vec())
    };
    FORGED
        .into_iter()
        .find(|(name, value)| last(name).as_deref() == Some(value.as_bytes()))
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::super::http_client::LIMITS;
    use super::*;

    fn forwarded(head: &str) -> ForwardedRequest {
        let request = Request::parse(head.as_bytes(), &LIMITS).unwrap();
        ForwardedRequest { hop: Hop::Unnamed, request, peer: IpAddr::from([127, 0, 0, 1]) }
    }

    #[test]
    fn a_hop_that_hides_its_clients_is_a_warning() {
        let config = "version = 1\n[upstream]\nserver = \"http://127.0.0.1:3000\"\n\
                      [listen]\ntrusted_proxies = [\"127.0.0.1\"]\n";
        let (config, _) = bywash_config::Config::parse(config, "test").unwrap();
        let tells = forwarded("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
        let hides = forwarded("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let adds = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.66, 192.0.2.1\r\n\r\n";
        let repeats = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.66\r\n\r\n";
        let named = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: forged.invalid\r\n\r\n";
        assert_eq!(tells.fields(Some(&config.listen)).verdict, Verdict::Ok);
        assert_eq!(tells.fields(None).verdict, Verdict::Warning);
        assert_eq!(hides.fields(Some(&config.listen)).verdict, Verdict::Warning);
        assert_eq!(forwarded(adds).fields(Some(&config.listen)).verdict, Verdict::Ok);
        for forged in [repeats, named] {
            assert_eq!(forwarded(forged).fields(Some(&config.listen)).verdict, Verdict::Problem);
            assert_eq!(forwarded(forged).fields(None).verdict, Verdict::Warning);
        }
    }

    #[test]
    fn a_new_connection_for_each_request_is_a_warning() {
        for (head, verdict) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Verdict::Ok),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Verdict::Warning),
            ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", Verdict::Warning),
        ] {
            assert_eq!(forwarded(head).reuse().verdict, verdict, "{head}");
        }
    }
}
