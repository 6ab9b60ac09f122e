//! Tests that the metrics of a running gateway agree with the table of metrics, and so with the
//! reference page.

use bywash_gateway::METRICS;
use bywash_metrics::differences;

use crate::setup::Setup;
use crate::tls::{Certified, serving};
use crate::upstream::Upstream;

#[test]
fn a_running_gateway_says_what_the_table_of_metrics_has_and_nothing_else() {
    let upstream = Upstream::echo();
    let keys = tempfile::NamedTempFile::new().unwrap();
    let key = "0123456789abcdef".repeat(4);
    std::fs::write(keys.path(), format!("{key}\n{}\n", key.replace('0', "1"))).unwrap();
    let certified = Certified::new("metrics", &["shop.example"]);
    let gateway = serving(&upstream, &[&certified])
        .set("levels.names", "['high', 'low']")
        .set("levels.key_file", &format!("'{}'", keys.path().display()))
        .set("class.pay", "{ match = ['POST /pay'], tier = 'transaction', revenue = 2 }")
        .set("class.page", "{ match = ['GET /p/**'], mode = 'observe' }")
        .start();
    gateway.get("/p/1");
    gateway.get("/other");
    gateway.is_idle_again();
    assert_eq!(differences(&METRICS, &gateway.metrics()), [""; 0]);
}

#[test]
fn tiers_and_the_bounds_of_the_limit_are_those_of_the_configuration_in_force() {
    let upstream = Upstream::echo();
    let with = |tier: &str, most: &str| {
        Setup::before(&upstream)
            .set("concurrency", &format!("{{ policy = 'slope', min = 3, max = {most} }}"))
            .set("class.pay", &format!("{{ match = ['POST /pay'], tier = '{tier}' }}"))
    };
    let gateway = with("transaction", "50").start();
    assert_eq!(gateway.metric("bywash_class_info{class=\"pay\",tier=\"transaction\"}"), 1.0);
    assert_eq!(gateway.metric("bywash_class_info{class=\"other\",tier=\"browsing\"}"), 1.0);
    assert_eq!(gateway.metric("bywash_limit_least"), 3.0);
    assert_eq!(gateway.metric("bywash_limit_most"), 50.0);
    gateway.reload(&with("browsing", "60")).unwrap();
    assert_eq!(gateway.metric("bywash_class_info{class=\"pay\",tier=\"browsing\"}"), 1.0);
    assert!(!gateway.metrics().contains("tier=\"transaction\""), "{}", gateway.metrics());
    assert_eq!(gateway.metric("bywash_limit_most"), 60.0);
}

#[test]
fn a_fixed_limit_has_one_bound() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let limit = gateway.metric("bywash_limit");
    assert_eq!(gateway.metric("bywash_limit_least"), limit);
    assert_eq!(gateway.metric("bywash_limit_most"), limit);
}
