//! Tests the goals of levels of service in virtual time: a ratio of response times with few to many
//! clients, and a percentile of response times across a step in load.

use std::path::{Path, PathBuf};

use bywash_scenario::{ClassRow, ResultRow, Scenario, Setting};

/// Returns the folder of the scenarios of paper 3.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../papers/3-parallel-qos/scenarios")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

fn play(file: &str, settings: &[String]) -> ResultRow {
    play_text(&text(file), settings)
}

fn play_text(text: &str, settings: &[String]) -> ResultRow {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = Scenario::parse_with(text, &folder(), &settings).unwrap();
    let (mut result, _) = bywash_sim::run(&scenario, &|_, _| ()).unwrap();
    result.cells.pop().unwrap()
}

fn of<'c>(cell: &'c ResultRow, class: &str) -> &'c ClassRow {
    cell.classes.iter().find(|cell| cell.class == class).unwrap()
}

fn ratio(cell: &ResultRow) -> f64 {
    of(cell, "high").mean_ms / of(cell, "low").mean_ms
}

#[test]
fn a_ratio_is_kept_where_threads_alone_lose_it_at_no_cost_in_throughput() {
    for (clients, alone) in [(4, 0.45..0.55), (20, 0.6..0.75), (100, 0.85..1.0)] {
        let clients = [format!("set.clients.clients={clients}")];
        let parity = play("paper-3.toml", &clients);
        let goal = play("paper-3-levels.toml", &clients);
        assert!(alone.contains(&ratio(&parity)), "{clients:?}: {}", ratio(&parity));
        assert!((0.45..=0.55).contains(&ratio(&goal)), "{clients:?}: {}", ratio(&goal));
        let throughput = goal.completed as f64 / parity.completed as f64;
        assert!((0.97..=1.03).contains(&throughput), "{clients:?}: {throughput}");
    }
}

#[test]
fn other_ratios_are_kept_as_well() {
    for target in [0.3, 0.7, 1.0] {
        let goal =
            format!("servers.threads.goal={{ fast = \"high\", slow = \"low\", ratio = {target} }}");
        let cell = play("paper-3-levels.toml", &["set.clients.clients=40".into(), goal]);
        assert!((ratio(&cell) / target - 1.0).abs() < 0.1, "{target}: {}", ratio(&cell));
    }
}

/// Returns the share of the high level's requests that were answered within `ms` milliseconds. Only
/// requests answered after the end of the run `before` and until the end of the run `until` count.
/// Both runs have the same visitors.
fn within(ms: f64, before: Option<&ResultRow>, until: &ResultRow) -> f64 {
    let counts = |cell: &ResultRow| {
        let high = of(cell, "high");
        let share = high.response.within(ms).unwrap();
        (high.completed as f64, high.completed as f64 * share)
    };
    let ((all, quick), (before, quick_before)) = (counts(until), before.map_or((0.0, 0.0), counts));
    (quick - quick_before) / (all - before)
}

#[test]
fn a_percentile_is_kept_in_each_phase_of_a_step_beyond_what_can_be_done() {
    let until = |end: &str| play("levels-step.toml", &[format!("run.duration={end}")]);
    let ends = ["120s", "180s", "300s"].map(until);
    let mut before = None;
    for (phase, end) in ["below", "above", "below again"].iter().zip(&ends) {
        // The goal is 150 ms. The test allows a tenth more.
        let share = within(165.0, before, end);
        println!("{phase}: {share:.3} within 165 ms, {:.3} within 150", within(150.0, before, end));
        assert!(share >= 0.95, "{phase}: {share}");
        before = Some(end);
    }
}

#[test]
fn without_the_goal_it_is_not_kept_at_all() {
    let file = text("levels-step.toml");
    let kept: Vec<&str> = file.lines().filter(|line| !line.starts_with("goal")).collect();
    let system = ["servers.threads.scheduler=system".into(), "servers.limit=10".into()];
    let system = play_text(&kept.join("\n"), &system);
    let p95 = of(&system, "high").response.quantile_ms(0.95).unwrap();
    assert!(p95 > 1000.0, "{p95}");
}
