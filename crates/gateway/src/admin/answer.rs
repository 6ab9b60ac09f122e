//! Writes answers to operators: documents, problems and plain text, with header fields that
//! restrict their use by a browser.

use bywash_api::{Code, Problem};
use bywash_message::Fields;
use http::StatusCode;
use serde::Serialize;

use crate::request::reply::Reply;

/// The answer to an operator's request, or the reason why the request was refused.
pub(super) type Answered = Result<Reply, Refused>;

/// The reason why a request was not answered or not carried out. It becomes a problem document (RFC
/// 9457).
#[derive(Debug)]
pub(super) struct Refused {
    code: Code,
    detail: String,
}

impl Refused {
    pub(super) fn new(code: Code, detail: impl std::fmt::Display) -> Self {
        Self { code, detail: detail.to_string() }
    }

    pub(super) fn invalid(detail: impl std::fmt::Display) -> Self {
        Self::new(Code::Invalid, detail)
    }

    pub(super) fn not_found(detail: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, detail)
    }

    pub(super) fn reply(self) -> Reply {
        let status = status_of(self.code);
        let problem = Problem { status: status.as_u16(), code: self.code, detail: self.detail };
        let mut fields = fields("application/problem+json");
        if status == StatusCode::UNAUTHORIZED {
            fields.push(b"WWW-Authenticate", b"Bearer realm=\"bywash\"");
        }
        Reply::local(status, fields, written(&problem))
    }
}

const fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Invalid => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::Unauthorised | Code::Expired => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::Conflict => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns an answer with a document of the API, as JSON.
pub(super) fn document(value: &impl Serialize) -> Reply {
    Reply::local(StatusCode::OK, fields("application/json"), written(value))
}

/// Returns an answer with the text of a document of the API.
#[cfg(feature = "fleet")]
pub(super) fn json(text: String) -> Reply {
    Reply::local(StatusCode::OK, fields("application/json"), text)
}

pub(super) fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("made of numbers, texts and names")
}

/// Returns an answer with a line of plain text, for a person or a probe.
pub(super) fn plain(status: StatusCode, words: &str) -> Reply {
    text(status, "text/plain; charset=utf-8", format!("{words}\n"))
}

pub(super) fn text(status: StatusCode, kind: &str, words: String) -> Reply {
    Reply::local(status, fields(kind), words)
}

/// Returns the header fields of an answer with content type `kind`. They forbid caching, MIME
/// sniffing, framing and use by other origins.
pub(super) fn fields(kind: &str) -> Fields {
    let mut fields = Fields::new();
    fields.push(b"Content-Type", kind.as_bytes());
    fields.push(b"Cache-Control", b"no-store");
    fields.push(b"X-Content-Type-Options", b"nosniff");
    fields.push(b"Referrer-Policy", b"no-referrer");
    fields.push(b"Cross-Origin-Resource-Policy", b"same-origin");
    fields.push(b"Cross-Origin-Opener-Policy", b"same-origin");
    fields.push(b"Content-Security-Policy", POLICY);
    fields
}

/// The content security policy of all answers. A page may load resources only from this listener,
/// and may not run inline scripts. So text that is inserted into a page never runs as a script.
const POLICY: &[u8] =
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
