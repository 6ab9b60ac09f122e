//! The metrics of the configuration in force, and of its certificates.

use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use super::label;

pub(super) static SUBJECT: Subject = Subject {
    title: "Configuration",
    about: "Which file is in force, whether the last reload succeeded, and when certificates \
            expire.",
    metrics: &[
        &CONFIG_INFO,
        &CONFIG_RELOADS,
        &CONFIG_LAST_RELOAD_SUCCESSFUL,
        &CONFIG_LAST_RELOAD_SUCCESS,
        &CERTIFICATE_EXPIRY,
    ],
};

pub(crate) const SUCCESS: &str = "success";
pub(crate) const FAILURE: &str = "failure";
pub(crate) const HASH: &str = "hash";
pub(crate) const CERTIFICATE: &str = "certificate";

pub(crate) static CONFIG_INFO: Metric = Metric {
    name: "bywash_config_info",
    kind: Gauge,
    unit: "always 1",
    labels: &[Label {
        name: HASH,
        says: "the beginning of its SHA-256, as `sha256sum FILE | cut -c1-16` prints it",
        words: Words::Configured,
    }],
    help: "1 for the configuration file that is in force",
    remedy: Do(
        "If gateways of one site have different hashes, one of them was not reloaded, or has \
         another file. Certificates, keys and pages next to the file do not count.",
    ),
};
pub(crate) static CONFIG_RELOADS: Metric = Metric {
    name: "bywash_config_reloads",
    kind: Counter,
    unit: "reloads",
    labels: &[label(
        "result",
        "`success`: the new file is in force; `failure`: nothing changed",
        || vec![SUCCESS, FAILURE],
    )],
    help: "Reloads of the configuration",
    remedy: Nothing("`bywash_config_last_reload_successful` says whether you have to act."),
};
pub(crate) static CONFIG_LAST_RELOAD_SUCCESSFUL: Metric = Metric {
    name: "bywash_config_last_reload_successful",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[],
    help: "0 if the last reload failed; the previous configuration is still in force",
    remedy: Do(
        "Standard error says why, and so does `bywash check FILE`. A restart would fail, or use \
         another configuration.",
    ),
};
pub(crate) static CONFIG_LAST_RELOAD_SUCCESS: Metric = Metric {
    name: "bywash_config_last_reload_success_timestamp_seconds",
    kind: Gauge,
    unit: "seconds since 1970",
    labels: &[],
    help: "When the configuration in force was read, at the start or by a reload",
    remedy: Nothing("It shows whether a reload explains a change in other numbers."),
};
pub(crate) static CERTIFICATE_EXPIRY: Metric = Metric {
    name: "bywash_certificate_expiry_timestamp_seconds",
    kind: Gauge,
    unit: "seconds since 1970",
    labels: &[Label {
        name: CERTIFICATE,
        says: "the certificate's file, as in `tls.certificates` or `upstream.tls_certificate`",
        words: Words::Configured,
    }],
    help: "When a certificate expires, as read at the start or by the last reload",
    remedy: Do(
        "Renew it. The gateway loads a new file within a second, and at SIGHUP. If this value does \
         not change then, the reload failed.",
    ),
};
