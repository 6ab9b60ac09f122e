//! Tests whether the hop in front closes its connection when a client has left, and what else it
//! does to requests.
//!
//! The gateway itself cannot hold a request for a test. So the doctor has its own origin
//! ([`Origin`]), to which the operator directs a test location of the hop, with the settings of the
//! real location. Three requests go through the hop. The first is answered: it shows that the hop
//! leads to this origin, and which product the hop is. Then a GET and a POST are held unanswered.
//! Their client closes its connection, and the origin waits for the hop to close as well.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bywash_config::{Listen, Server};
use bywash_message::{Fields, Response};
use bywash_tls::{ClientOptions, Connector};
use http::Method;
use tokio::time::timeout;

use super::finding::Finding;
use super::forwarded::{FORGED, ForwardedRequest};
use super::hop::Hop;
use super::http_client::{Connection, dial, millis, shown};
use super::origin::{HeldRequest, Origin, TOKEN};
use crate::front_url::Front;

const CLOSES: &str = "front closes";

/// The maximum time for the hop to forward a request, and to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum time for the hop to close its connection. A hop that closes when its client has left
/// does so immediately, so a hop that needs longer does not do it at all.
const SOON: Duration = Duration::from_secs(2);

/// The time that a client of the test waits before it leaves.
const WAITED: Duration = Duration::from_millis(200);

/// Runs the test, and returns its findings. `listen` says which hops the gateway trusts.
pub(super) async fn test(
    front: &Front,
    address: SocketAddr,
    listen: Option<&Listen>,
) -> Vec<Finding> {
    // The token only distinguishes the requests of the test from others, so it need not be secret.
    let random = || RandomState::new().hash_one("doctor");
    let token = format!("{:016x}{:016x}", random(), random());
    let mut origin = match Origin::listen(address, &token).await {
        Ok(origin) => origin,
        Err(error) => {
            let found = format!("the doctor cannot listen on {address}: {error}");
            let remedy =
                "choose another address by --origin, and lead the hop's test location there";
            return vec![Finding::problem(CLOSES, found, remedy)];
        }
    };
    let tls = bywash_tls::client(ClientOptions::default()).ok();
    let route = Route { front, token: &token, tls };
    let forwarded = match route.answered(&mut origin).await {
        Ok(forwarded) => forwarded,
        Err(found) => {
            let remedy = format!(
                "give the hop a test location that leads to http://{address}, with the settings of \
                 the real one; `bywash doctor --help` shows an example"
            );
            return vec![Finding::problem(CLOSES, found, remedy)];
        }
    };
    vec![
        route.closes(&mut origin, forwarded.hop).await,
        forwarded.fields(listen),
        forwarded.reuse(),
    ]
}

/// The route of the test's requests through the hop.
struct Route<'a> {
    front: &'a Front,
    token: &'a str,
    tls: Option<Connector>,
}

impl Route<'_> {
    /// Sends a request that the origin answers, and returns the request as the origin received it.
    async fn answered(&self, origin: &mut Origin) -> Result<ForwardedRequest, String> {
        let (held, mut connection) = self.held(origin, &Method::GET, b"").await?;
        let (request, peer) = (held.request.clone(), held.peer.ip().to_canonical());
        let (answer, ()) = tokio::join!(timeout(PATIENCE, connection.answer()), held.answer());
        match answer {
            Ok(Ok(answer)) if answer.status.is_success() => {
                Ok(ForwardedRequest { hop: Hop::of(&answer.fields), request, peer })
            }
            Ok(Ok(answer)) => Err(answers_itself(&answer)),
            Ok(Err(error)) => Err(format!("the hop does not forward the answer: {error}")),
            Err(_) => Err(format!("the hop does not forward the answer within {PATIENCE:?}")),
        }
    }

    /// Sends a request that the origin holds, and returns when the origin has received it. Returns
    /// the held request, and the client's connection.
    async fn held(
        &self,
        origin: &mut Origin,
        method: &Method,
        body: &[u8],
    ) -> Result<(HeldRequest, Connection), String> {
        let mut connection = self.send(method, body).await.map_err(|error| {
            let advice =
                bywash_tls::advice(&error).unwrap_or("check that it is the address of the hop");
            format!("cannot send a request to {}: {error} ({advice})", self.front.server)
        })?;
        let held = tokio::select! {
            held = origin.next_request() => Some(held),
            answer = connection.head() => {
                return Err(match answer {
                    Ok(answer) => answers_itself(&answer),
                    Err(error) => format!("the hop does not forward the request: {error}"),
                });
            }
            () = tokio::time::sleep(PATIENCE) => None,
        };
        match held {
            Some(held) => Ok((held, connection)),
            None => Err(format!("no request reached the doctor's origin within {PATIENCE:?}")),
        }
    }

    async fn send(&self, method: &Method, body: &[u8]) -> io::Result<Connection> {
        let sent = async {
            let (mut connection, _) = dial(&self.front.server, self.tls.as_ref()).await?;
            let mut fields = Fields::new();
            fields.push(b"Host", host(&self.front.server).as_bytes());
            fields.push(b"User-Agent", b"bywash-doctor");
            fields.push(TOKEN.as_bytes(), self.token.as_bytes());
            for (name, value) in FORGED {
                fields.push(name.as_bytes(), value.as_bytes());
            }
            connection.ask(method, &self.front.target, &fields, body).await?;
            Ok(connection)
        };
        timeout(PATIENCE, sent).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Sends a request, then closes the client's connection. Returns the time until the hop closes
    /// its connection as well; `None` if that takes longer than [`SOON`]. It is an error if the hop
    /// closes while the client still waits.
    async fn left(
        &self,
        origin: &mut Origin,
        method: &Method,
        body: &[u8],
    ) -> Result<Option<Duration>, String> {
        let (mut held, connection) = self.held(origin, method, body).await?;
        // This is the control. If the hop closes although its client still waits, a close after the
        // client has left proves nothing.
        if held.wait_for_close(WAITED).await.is_some() {
            let why = "while its client still waits for an answer, the hop closes its connection";
            return Err(format!("{why} to the origin ({method})"));
        }
        drop(connection);
        let after = held.wait_for_close(SOON).await;
        if after.is_none() {
            // The hop no longer needs an answer. But without one, it might regard the origin as
            // broken.
            held.answer().await;
        }
        Ok(after)
    }

    async fn closes(&self, origin: &mut Origin, hop: Hop) -> Finding {
        let get = self.left(origin, &Method::GET, b"").await;
        let post = self.left(origin, &Method::POST, &[b'x'; 1000]).await;
        match (get, post) {
            (Ok(get), Ok(post)) => judge(hop, get, post),
            (Err(why), _) | (_, Err(why)) => {
                let remedy = "an earlier request came through: give the test location the settings \
                              and timeouts of the real one, and repeat the test";
                Finding::problem(CLOSES, why, remedy)
            }
        }
    }
}

/// Returns the value of the `Host` field: the host, with the port unless it is the scheme's
/// default.
fn host(server: &Server) -> String {
    let authority = server.authority();
    let usual = format!(":{}", server.scheme.port());
    authority.strip_suffix(&usual).map_or(authority.clone(), str::to_owned)
}

fn answers_itself(answer: &Response) -> String {
    let status = answer.status.as_u16();
    format!("the hop answers {status} itself: its location does not lead to the doctor's origin")
}

fn judge(hop: Hop, get: Option<Duration>, post: Option<Duration>) -> Finding {
    let after = |time: Option<Duration>| match time {
        Some(time) => format!("closes {} after its client", shown(time)),
        None => format!("stays open for {SOON:?} and more"),
    };
    let found = format!(
        "{}: on a GET it {}, on a POST with a body it {}",
        hop.name(),
        after(get),
        after(post)
    );
    let finding = if get.is_some() && post.is_some() {
        Finding::ok(CLOSES, found)
    } else {
        let hidden = "so bywash does not see those clients leave, and still serves their requests";
        Finding::problem(CLOSES, format!("{found}: {hidden}"), hop.remedy())
    };
    let finding = finding.with("hop", hop.name());
    finding.with("get_closed_ms", get.map(millis)).with("post_closed_ms", post.map(millis))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let front: Front = "https://shop.example/doctor/?a=b".parse().unwrap();
        assert_eq!(front.target, "/doctor/?a=b");
        assert_eq!(front.server.to_string(), "https://shop.example:443");
        assert_eq!(host(&front.server), "shop.example");
        let front: Front = "http://[::1]:8080".parse().unwrap();
        assert_eq!((front.target.as_str(), host(&front.server).as_str()), ("/", "[::1]:8080"));
    }

    #[test]
    fn both_methods_must_be_passed_on() {
        let soon = Some(Duration::from_millis(1));
        assert_eq!(judge(Hop::Nginx, soon, soon).verdict, Verdict::Ok);
        for (get, post) in [(None, None), (soon, None), (None, soon)] {
            let finding = judge(Hop::Nginx, get, post);
            assert_eq!(finding.verdict, Verdict::Problem);
            assert!(finding.remedy.unwrap().contains("proxy_ignore_client_abort"));
        }
    }
}
