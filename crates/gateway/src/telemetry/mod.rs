//! Records and reports of the requests that have ended.

pub(crate) mod access_log;
pub(crate) mod history;
pub(crate) mod metrics;
pub(crate) mod orphans;
pub(crate) mod request_log;
pub(crate) mod traces;
