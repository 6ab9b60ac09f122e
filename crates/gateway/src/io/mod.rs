//! The bytes of connections, and message bodies as they pass through.

pub(crate) mod body;
pub(crate) mod stream;
pub(crate) mod upload;
pub(crate) mod wire;
