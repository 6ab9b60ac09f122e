//! Parses the head and the body of a request before it enters the queue.
//!
//! Everything that a client sends is bounded and checked here. Later code sees only typed values.

use std::time::Duration;

use bywash_site::{Form, Refusal, Sid};
use http::header::HeaderMap;

use crate::Stage;

/// The header with the service demand of a request, in whole microseconds. The demand is at most
/// [`MAX_DEMAND`].
pub const DEMAND_HEADER: &str = "shop-demand-us";

/// The header with the client's own tag, which is stored with the order. It has 1 to 64 characters
/// of `A-Z a-z 0-9 _ -`.
pub const ORDER_TAG_HEADER: &str = "shop-order-tag";

/// The longest service demand: the maximum time that one request may occupy a worker.
pub const MAX_DEMAND: Duration = Duration::from_secs(60);

const DEMAND: Refusal =
    Refusal::Invalid("shop-demand-us must be whole microseconds, at most 60000000");
const ORDER_TAG: Refusal =
    Refusal::Invalid("shop-order-tag must be 1 to 64 characters of A-Z a-z 0-9 _ -");

/// The maximum length of an order tag, in characters.
const MAX_TAG: usize = 64;

/// A parsed request that is ready to queue.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    pub(crate) stage: Stage,
    /// The service demand that the client asks for; `None` for the shop's default for the stage.
    pub(crate) demand: Option<Duration>,
    /// The session that the client claims; `None` if it claims none. The store checks later whether
    /// the session exists.
    pub(crate) sid: Option<Sid>,
    pub(crate) order_tag: Option<String>,
    /// The fields of the query and of the body.
    pub(crate) form: Form,
}

impl ParsedRequest {
    /// Parses a request for `stage`. Refuses an invalid body, demand or tag.
    pub(crate) fn read(
        stage: Stage,
        head: &http::request::Parts,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        Ok(Self {
            stage,
            demand: demand(&head.headers)?,
            sid: Sid::of(&head.headers),
            order_tag: order_tag(&head.headers)?,
            form: Form::read(head.uri.query().unwrap_or_default(), body),
        })
    }
}

fn demand(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get(DEMAND_HEADER) else {
        return Ok(None);
    };
    let micros = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let demand = micros.and_then(|text| text.parse().ok()).map(Duration::from_micros);
    demand.filter(|demand| *demand <= MAX_DEMAND).map(Some).ok_or(DEMAND)
}

fn order_tag(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(ORDER_TAG_HEADER) else {
        return Ok(None);
    };
    let tag = value.to_str().ok().filter(|text| is_tag(text));
    tag.map(|text| Some(text.to_owned())).ok_or(ORDER_TAG)
}

fn is_tag(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_TAG).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> HeaderMap {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0.headers
    }

    #[test]
    fn a_demand_is_whole_microseconds_up_to_a_minute() {
        let read = |text: &str| demand(&head(&[(DEMAND_HEADER, text)]));
        assert_eq!(demand(&head(&[])), Ok(None));
        assert_eq!(read("0"), Ok(Some(Duration::ZERO)));
        assert_eq!(read("60000000"), Ok(Some(MAX_DEMAND)));
        for wrong in ["", "60000001", "-1", "+1", "1.5", "20ms", "99999999999999999999"] {
            assert_eq!(read(wrong), Err(DEMAND), "{wrong:?}");
        }
    }

    #[test]
    fn a_tag_is_short_and_plain() {
        let read = |text: &str| order_tag(&head(&[(ORDER_TAG_HEADER, text)]));
        assert_eq!(read("run-7_A"), Ok(Some("run-7_A".to_owned())));
        assert!(read(&"x".repeat(64)).is_ok());
        for wrong in ["", "a b", "a'b", &"x".repeat(65)] {
            assert_eq!(read(wrong), Err(ORDER_TAG), "{wrong:?}");
        }
    }
}
