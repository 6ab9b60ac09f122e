//! Records of the requests that have ended: metrics, logs, history and traces. Also tells the stop
//! daemon which requests' work should stop: the client has left, the deadline has passed, or the
//! request was terminated.

pub(crate) mod access_log;
pub(crate) mod history;
pub(crate) mod metrics;
pub(crate) mod orphans;
pub(crate) mod request_log;
pub(crate) mod traces;
