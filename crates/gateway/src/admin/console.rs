//! Serves the console's files, which are built into the program.

use http::StatusCode;

use super::answer::fields;
use crate::request::reply::Reply;

/// Returns an answer with the console's file at this path; `None` if there is no such file.
pub(super) fn file(path: &str, takes_gzip: bool) -> Option<Reply> {
    let asset = bywash_console::asset(path)?;
    let mut fields = fields(asset.kind);
    fields.push(b"Vary", b"Accept-Encoding");
    if takes_gzip {
        fields.push(b"Content-Encoding", b"gzip");
        return Some(Reply::local(StatusCode::OK, fields, asset.packed()));
    }
    Some(Reply::local(StatusCode::OK, fields, asset.bytes))
}
