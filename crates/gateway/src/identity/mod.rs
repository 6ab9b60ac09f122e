//! The identity of a request's sender: cookies, session tokens, service levels, populations, signed agents.

pub(crate) mod agents;
pub(crate) mod appointments;
pub(crate) mod cacheable;
pub(crate) mod cookies;
pub(crate) mod levels;
pub(crate) mod populations;
pub(crate) mod session_cookie;
pub(crate) mod tokens;
