//! Why something was not done (RFC 9457); and that it is a gateway who says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every answer that is no success, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The answer's status.
    pub status: u16,
    /// What kind of problem it is.
    pub code: Code,
    /// What is wrong and what helps, for people.
    pub detail: String,
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// What was said cannot be read or makes no sense.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// That cannot be done with it.
    MethodNotAllowed,
    /// No token, or one that this gateway did not sign.
    Unauthorised,
    /// The token was good once.
    Expired,
    /// The token does not allow it, or the page that asks is not the console.
    Forbidden,
    /// Somebody else has decided meanwhile: ask what holds now.
    Conflict,
    /// It is larger than what is answered here.
    TooLarge,
    /// It cannot be done now.
    Unavailable,
}

/// That the gateway has the operators' key: see `/v1/proof`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// HMAC-SHA256 over the nonce, a space and the address that it listens on; base64url.
    pub proof: String,
}
