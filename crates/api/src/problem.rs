//! The body of a failed request to the API (RFC 9457), and the proof that a gateway answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every error response, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// The HTTP status of the response, repeated in the body.
    pub status: u16,
    /// The kind of problem.
    pub code: Code,
    /// The fault and its remedy, as a text for people.
    pub detail: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be parsed, or its values make no sense.
    Invalid,
    /// The path, or the item that it names, does not exist.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The token is missing, or this gateway did not sign it.
    Unauthorised,
    /// The token has expired.
    Expired,
    /// The token does not permit the operation, or the request comes from a web page other than the
    /// console.
    Forbidden,
    /// Another decision has changed the revision that the request names. Read the current state
    /// before another attempt.
    Conflict,
    /// The requested file is larger than this API returns.
    TooLarge,
    /// The operation is not possible at present.
    Unavailable,
}

/// The proof that the gateway has the operators' key; see `/v1/proof`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The HMAC-SHA256 of the nonce, a space and the address that the gateway listens on, in
    /// base64url.
    pub proof: String,
}
