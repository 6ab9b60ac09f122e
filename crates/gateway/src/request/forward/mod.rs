//! The third phase of a request: sends it to the upstream and receives the head of the response.
//!
//! **Server choice.** The balancer chooses the server. If the connection to a server fails, nothing
//! was sent, so the next server is tried for any request.
//!
//! **No request is processed twice.** A request of which something may have been sent is sent again
//! only under three conditions. It is safe (RFC 9110 §9.2.1), it has no body, and its connection
//! had carried another request before and ended without a byte of a response. In that case the
//! server was closing the idle connection just as the request went out. If the server reports that
//! it has not processed the request (HTTP/2), a request without a body is sent again. That does not
//! count as a failure.

mod sender;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bywash_message::{Fields, Framing, Name, ParseError, Request, Response};
use bywash_units::TimeSpan;
use http::{StatusCode, Version};

use self::sender::{Connected, Sender};
use super::ClientConnection;
use super::deadline::Deadline;
use super::{ClientRate, Peer, forwarded};
use crate::context::Worker;
use crate::driver::Ticket;
use crate::identity::cookies;
use crate::identity::levels::Levels;
use crate::io::upload::Upload;
use crate::request::record::Record;
use crate::telemetry::traces;
use crate::upstream::servers::Load;
use crate::upstream::{Exchange, MOST_HEADS, Outbound, Pool, UpstreamError};

/// A request to forward, with its body and its client.
pub(super) struct Forward {
    pub(super) request: Request,
    pub(super) upload: Upload,
    pub(super) peer: Rc<Peer>,
    pub(super) back: Rc<dyn ClientConnection>,
    pub(super) client: ClientRate,
}

/// A request to which the upstream has begun to respond, with the state that is needed to forward
/// the rest of the response.
pub(super) struct Forwarded {
    pub(super) exchange: Exchange,
    pub(super) response: Response,
    pub(super) load: Load,
    pub(super) pool: Rc<Pool>,
    pub(super) deadline: Deadline,
    pub(super) takes_trailers: bool,
    pub(super) client: ClientRate,
    /// The client connection that may keep the upstream connection, if a server has authenticated
    /// the upstream connection.
    pub(super) owner: Option<Rc<dyn ClientConnection>>,
}

/// A request that was sent to a server and has no response yet.
pub(super) struct AtServer {
    pub(super) exchange: Exchange,
    pub(super) load: Load,
    pub(super) deadline: Deadline,
}

/// The name in `Via` by which bywash gateways mark a request that has passed them.
const PSEUDONYM: &[u8] = b"bywash";

/// The maximum number of bywash gateways that a request may pass. A request with more entries is in
/// a loop.
const HOPS: usize = 8;

/// Returns whether the request has already passed [`HOPS`] bywash gateways.
pub(super) fn is_looping(fields: &Fields) -> bool {
    let hops = fields.all(Name::Via).flat_map(|line| line.split(|byte| *byte == b','));
    hops.filter(|hop| hop.trim_ascii().ends_with(PSEUDONYM)).count() >= HOPS
}

/// Sends a request. Returns the head of the response and the exchange on which its body arrives.
///
/// Until a response begins, the exchange is in `at_server`, for a caller that drops this future.
/// `ticket` is given for a request that may be stopped if its client is slow while others wait.
///
/// # Errors
/// Returns an error if no server can be reached, or if the exchange fails and the request may not
/// be sent again.
pub(super) async fn forward(
    worker: &Worker,
    record: &mut Record,
    ticket: Option<&Ticket>,
    mut forward: Box<Forward>,
    at_server: &mut Option<AtServer>,
) -> Result<Forwarded, UpstreamError> {
    let settings = Rc::clone(record.settings());
    let level = settings.levels.as_ref().zip(record.level_to_tell());
    let upgrade = prepare(&mut forward, record, level.is_some());
    let mut upload = std::mem::replace(&mut forward.upload, Upload::none());
    let Forward { request, back, peer, client, .. } = &mut *forward;
    let (deadlines, is_safe) = (record.facts().deadlines, record.facts().safe);
    let timeouts = settings.timeouts(&record.facts().request);
    let mut deadline =
        Deadline::new(&timeouts, settings.config.client_limits.body_rate, Rc::clone(peer));
    let stopped_at = record.may_run_until();
    // A trusted hop sends requests of many users on one connection. So an authenticated upstream
    // connection must not be bound to its connection.
    let may_pin = !peer.is_trusted;
    let pin = back.pin().filter(|_| may_pin);
    let mut sender = Sender::new(worker, record, &timeouts, pin);
    let mut may_be_stale = true;
    loop {
        let Connected { link, mut load, reused } = sender.connect(may_be_stale, &deadline).await?;
        // The time to connect does not count as time without a response.
        deadline.progressed();
        let now = worker.shared.driver.now();
        load.is_sent(now, reused);
        let begins = stopped_at.map_or(TimeSpan::MAX, |at| at.since(now)).min(timeouts.response);
        deadlines.write(
            &mut request.fields,
            sender.waited(now),
            begins,
            deadline.left_at_progress(),
        );
        if let Some((levels, level)) = level {
            levels.set_field(&mut request.fields, level);
        }
        let outbound = outbound(request, upgrade.as_deref());
        let spare = has_no_body(request.framing).then(Upload::none);
        let exchange = Exchange::begin(link, &outbound, upload);
        let sent = at_server.insert(AtServer { exchange, load, deadline });
        let answer = response(worker, sent, ticket, &**back, client, upgrade.is_some()).await;
        let taken = at_server.take().expect("only whoever drops this future takes it away");
        let AtServer { exchange, load, deadline: until } = taken;
        deadline = until;
        // If a reused connection has ended without a byte of a response, the server was probably
        // closing it, and is not to blame.
        let stale = reused && exchange.is_unanswered();
        let again = match answer {
            Ok(response) => {
                deadline.answers();
                let (pool, sent) = (sender.pool, AtServer { exchange, load, deadline });
                return Ok(forward.answered(sent, response, pool, may_pin));
            }
            Err(error) if exchange.is_unprocessed() => {
                upload = spare.filter(|_| sender.refused(&load)).ok_or(error)?;
                continue;
            }
            Err(UpstreamError::Closed) if stale => spare.filter(|_| is_safe),
            Err(error) => {
                sender.failed(&exchange, load, &error);
                return Err(error);
            }
        };
        upload = again.ok_or(UpstreamError::Closed)?;
        may_be_stale = false;
    }
}

impl Forward {
    /// Returns the request as one to which the upstream has begun to respond.
    fn answered(
        self,
        sent: AtServer,
        response: Response,
        pool: Rc<Pool>,
        may_pin: bool,
    ) -> Forwarded {
        let AtServer { exchange, load, deadline } = sent;
        let Self { request, back, client, .. } = self;
        Forwarded {
            exchange,
            response,
            load,
            pool,
            deadline,
            takes_trailers: request.takes_trailers,
            client,
            owner: Some(back).filter(|back| may_pin && back.pin().is_some()),
        }
    }
}

/// Waits for the head of the response to a request that was sent. In the meantime, interim
/// responses go to the client, and the engine learns whether the client uploads slowly.
async fn response(
    worker: &Worker,
    sent: &mut AtServer,
    ticket: Option<&Ticket>,
    back: &dyn ClientConnection,
    client: &mut ClientRate,
    upgrade: bool,
) -> Result<Response, UpstreamError> {
    let AtServer { exchange, load, deadline } = sent;
    let hints = |cx: &mut Context<'_>, status, fields: &Fields| {
        load.shows_life(worker.shared.driver.now());
        back.interim(cx, status, fields);
    };
    let slow = |cx: &mut Context<'_>, exchange: &mut Exchange| {
        ticket.inspect(|ticket| client.observe_upload(cx, exchange, ticket));
    };
    head(exchange, deadline, slow, hints, upgrade).await
}

fn outbound<'r>(request: &'r Request, upgrade: Option<&'r [u8]>) -> Outbound<'r> {
    Outbound {
        method: &request.method,
        target: request.target.path_and_query(),
        fields: &request.fields,
        framing: request.framing,
        takes_trailers: request.takes_trailers,
        upgrade,
    }
}

/// Waits for the head of the response. `waits` is called on each poll while the head has not
/// arrived. Interim responses go to `hints`, except `100`, because the gateway itself asks the
/// client for the body.
///
/// # Errors
/// Returns an error if the exchange fails, a time limit is exceeded, or the server sends too many
/// interim responses or switches protocols without a request for it.
pub(super) async fn head(
    exchange: &mut Exchange,
    deadline: &mut Deadline,
    mut waits: impl FnMut(&mut Context<'_>, &mut Exchange),
    hints: impl Fn(&mut Context<'_>, StatusCode, &Fields),
    upgrade: bool,
) -> Result<Response, UpstreamError> {
    let (mut sent, mut heads) = (0, 0);
    poll_fn(|cx| {
        loop {
            let mut response = match exchange.poll_head(cx) {
                Poll::Ready(response) => response?,
                Poll::Pending => {
                    deadline.excuse_upstream(exchange, &mut sent);
                    waits(cx, exchange);
                    return deadline.poll(cx).map(Err);
                }
            };
            heads += 1;
            if heads > MOST_HEADS {
                return Poll::Ready(Err(UpstreamError::Garbage(ParseError::Syntax)));
            }
            let status = response.status;
            if !status.is_informational() || (status == StatusCode::SWITCHING_PROTOCOLS && upgrade)
            {
                return Poll::Ready(Ok(response));
            }
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Poll::Ready(Err(UpstreamError::Switched));
            }
            if status != StatusCode::CONTINUE {
                response.fields.remove_hop_by_hop();
                hints(cx, status, &response.fields);
            }
        }
    })
    .await
}

const fn has_no_body(framing: Framing) -> bool {
    matches!(framing, Framing::None | Framing::Length(0))
}

/// Rewrites the client's head for the upstream. `tells` says whether the gateway will add the
/// request's level. Returns the protocol that the client wants to switch to, if any.
fn prepare(forward: &mut Forward, record: &Record, tells: bool) -> Option<Vec<u8>> {
    let Forward { request, peer, .. } = forward;
    let (settings, fields) = (record.settings(), &mut request.fields);
    let wanted = || fields.get(Name::Upgrade).map(<[u8]>::to_vec);
    let upgrade = if request.upgrades { wanted() } else { None };
    fields.remove_hop_by_hop();
    fields.remove(Name::Expect);
    fields.remove(Name::Ours);
    if let Some(name) = settings.levels.as_ref().and_then(Levels::customer_header)
        && (tells || !peer.is_trusted)
    {
        fields.remove_alike(name.as_bytes());
    }
    fields.remove(Name::GrpcTimeout);
    if record.class_enforces() && !record.class_config().success.json.is_empty() {
        // The gateway must read the response body to find the conditions of success, so the body
        // must not be compressed.
        fields.remove(Name::AcceptEncoding);
    }
    if let Some(tokens) = &settings.tokens {
        cookies::remove_cookie(fields, tokens.cookie());
    }
    if request.framing != Framing::Chunked {
        fields.remove(Name::Trailer);
    }
    if !fields.has(Name::Host) {
        // HTTP/1.0 clients may leave `Host` out, but the gateway sends HTTP/1.1 to the upstream.
        let upstream = || settings.config.upstream.servers[0].authority().into_bytes();
        let host =
            if request.authority.is_empty() { upstream() } else { request.authority.to_vec() };
        fields.push(b"Host", &host);
    }
    fields.push(b"Via", via(request.version));
    let listen = &settings.config.listen;
    forwarded::take_claims_out(fields, peer, &listen.pass_fields);
    forwarded::rebuild(fields, peer, listen);
    fields.push(b"Bywash-Request", &hexadecimal(record.name()));
    traces::propagate(fields, record.trace());
    upgrade
}

const fn via(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_10 => b"1.0 bywash",
        Version::HTTP_2 => b"2.0 bywash",
        // `Version` is an opaque struct, so the match needs a default. The message layer accepts
        // only HTTP/1.1 besides the versions above.
        _ => b"1.1 bywash",
    }
}

/// Formats a number as sixteen hexadecimal digits.
fn hexadecimal(name: u64) -> [u8; 16] {
    core::array::from_fn(|i| b"0123456789abcdef"[(name >> (60 - 4 * i)) as usize & 0xf])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_sixteen_digits() {
        assert_eq!(&hexadecimal(0x1234_abcd), b"000000001234abcd");
    }

    #[test]
    fn a_request_that_has_been_through_eight_of_us_is_in_a_loop() {
        let mut fields = Fields::new();
        fields.push(b"Via", b"1.1 varnish, 1.1 bywash, 2.0 bywash,1.1 bywash");
        for _ in 0..4 {
            fields.push(b"Via", b"1.1 bywash");
        }
        assert!(!is_looping(&fields));
        fields.push(b"Via", b"1.1 bywash");
        assert!(is_looping(&fields));
    }
}
