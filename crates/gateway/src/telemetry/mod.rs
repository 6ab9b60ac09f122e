//! Records of the requests that have ended: metrics, logs, history, traces, reports of given-up
//! requests.

pub(crate) mod access_log;
pub(crate) mod history;
pub(crate) mod metrics;
pub(crate) mod orphans;
pub(crate) mod request_log;
pub(crate) mod traces;
