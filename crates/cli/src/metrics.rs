//! The reference of the metrics of the gateway and of the stop daemon, as Markdown or as JSON.

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_metrics::{Subject, json, reference};

const ABOUT: &str = "\
This page is for operators who collect the metrics of bywash. After it, you know what each metric counts, and what to
do when its value changes.

`/metrics` of the gateway (`listen.admin`) and, in the last section, of the stop daemon (`stopd.admin`), for
Prometheus. Names are as queries write them. A histogram `NAME` has the series `NAME_bucket`, `NAME_sum` and
`NAME_count`. Counters begin at 0 with each process. The last column says what to do when a value changes, or is not as
it should be. [Alerts](../../examples/prometheus/alerts.yml) watch most of them, and
[a dashboard](../../examples/grafana/bywash.json) shows the most useful ones.";

pub(crate) fn metrics_reference(as_json: bool) -> Result<(), Failure> {
    let subjects = bywash_gateway::METRICS.into_iter();
    #[cfg(feature = "stopd")]
    let subjects = subjects.chain(bywash_stopd::METRICS);
    let subjects: Vec<&Subject> = subjects.collect();
    if as_json { print_json(&json(&subjects)) } else { print(&reference(ABOUT, &subjects)) }
}
