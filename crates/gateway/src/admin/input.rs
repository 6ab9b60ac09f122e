//! Parses the requests of operators: a JSON document in the body, strictly and within bounds, and
//! the query.

use std::collections::BTreeMap;
use std::future::poll_fn;

use bywash_api::Code;
use bywash_control::DecisionMeta;
use bywash_message::Request;
use bywash_terminal::text::{escaped, excerpt};
use bywash_units::TimeSpan;
use serde::de::DeserializeOwned;

use super::answer::Refused;
use crate::io::body::Body;
use crate::io::body::Piece;

/// The maximum size of a body in bytes. A decision has two texts of 200 characters, author and
/// reason, and a few numbers.
const MOST: usize = 16 * 1024;

/// The default duration of a decision.
const USUAL: TimeSpan = TimeSpan::from_secs(3600);

/// Reads a request's body and parses it as one JSON object. Returns an error if the content type is
/// not JSON, or if the body is too large, cannot be read, or does not have the fields of `T`.
pub(super) async fn parse_body<T: DeserializeOwned>(
    request: &Request,
    mut body: Body,
) -> Result<T, Refused> {
    let kind = request.fields.named(b"content-type").next().unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !kind.eq_ignore_ascii_case(b"application/json") {
        return Err(Refused::invalid(
            "the body must be JSON, with the header field Content-Type: application/json",
        ));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = next(&mut body).await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MOST {
            return Err(Refused::invalid("the body is too large: a decision has at most 16 KiB"));
        }
    }
    // serde would accept an array in place of an object. For other values, its error messages would
    // name Rust types.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refused::invalid("the body must be one JSON object: `{ … }`"));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        // The error quotes the body. It is escaped, because it may be shown anywhere as text.
        Refused::invalid(escaped(&error.to_string()))
    })
}

async fn next(body: &mut Body) -> Result<Option<bytes::Bytes>, Refused> {
    match poll_fn(|cx| body.poll_piece(cx)).await {
        Ok(Piece::Data(data)) => Ok(Some(data)),
        Ok(Piece::End(_)) => Ok(None),
        Err(why) => Err(Refused::new(Code::Invalid, format!("the body cannot be read: {why}"))),
    }
}

/// Returns the author, reason and duration of a decision, with an hour as the default duration.
/// Returns an error if the duration is malformed.
pub(super) fn meta(by: String, why: String, lasts: Option<&str>) -> Result<DecisionMeta, Refused> {
    meta_with_default(by, why, lasts, USUAL)
}

/// Returns the author, reason and duration of a decision, with `usual` as the default duration.
/// Returns an error if the duration is malformed.
pub(super) fn meta_with_default(
    by: String,
    why: String,
    lasts: Option<&str>,
    usual: TimeSpan,
) -> Result<DecisionMeta, Refused> {
    let lasts = lasts.map_or(Ok(usual), str::parse);
    Ok(DecisionMeta { by, why, lasts: lasts.map_err(Refused::invalid)? })
}

/// Parses the query's `name=value` pairs, decoded as forms are. Returns an error for a name that is
/// not in `known`, because it would have no effect.
pub(super) fn query(
    request: &Request,
    known: &[&str],
) -> Result<BTreeMap<String, String>, Refused> {
    let target = request.target.path_and_query();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs: BTreeMap<String, String> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    match pairs.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let name = excerpt(name, 40);
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(Refused::invalid(format!(
                "unknown query parameter `{name}`; known parameters: {known}"
            )))
        }
        None => Ok(pairs),
    }
}

/// Returns the number of entries that the query wants (`limit`): 1 to 1000, by default 100. Returns
/// an error for any other value.
pub(super) fn limit(query: &BTreeMap<String, String>) -> Result<usize, Refused> {
    let Some(text) = query.get("limit") else { return Ok(100) };
    let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
    limit.ok_or_else(|| Refused::invalid("`limit` must be from 1 to 1000"))
}
