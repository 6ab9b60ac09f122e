//! Goals of levels in virtual time: a ratio from few clients to many, and a percentile across a step in load.
#![allow(clippy::unwrap_used, reason = "clippy takes what tests share for a library")]

use std::path::{Path, PathBuf};

use bywash_scenario::{Cell, ClassCell, Scenario, Setting};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

fn play(file: &str, settings: &[String]) -> Cell {
    play_text(&text(file), settings)
}

fn play_text(text: &str, settings: &[String]) -> Cell {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = Scenario::parse_with(text, &folder(), &settings).unwrap();
    let (mut result, _) = bywash_sim::run(&scenario, &|_, _| ()).unwrap();
    result.cells.pop().unwrap()
}

fn of<'c>(cell: &'c Cell, class: &str) -> &'c ClassCell {
    cell.classes.iter().find(|cell| cell.class == class).unwrap()
}

fn ratio(cell: &Cell) -> f64 {
    of(cell, "high").mean_ms / of(cell, "low").mean_ms
}

#[test]
fn a_ratio_is_kept_where_threads_alone_lose_it_at_no_cost_in_throughput() {
    for (clients, alone) in [(4, 0.45..0.55), (20, 0.6..0.75), (100, 0.85..1.0)] {
        let clients = [format!("set.clients.clients={clients}")];
        let parity = play("seed-3.toml", &clients);
        let goal = play("seed-3-levels.toml", &clients);
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
        let cell = play("seed-3-levels.toml", &["set.clients.clients=40".into(), goal]);
        assert!((ratio(&cell) / target - 1.0).abs() < 0.1, "{target}: {}", ratio(&cell));
    }
}

#[test]
fn a_percentile_is_kept_when_more_comes_than_can_be_done_and_not_at_all_without_the_goal() {
    let p95 = |cell: &Cell| of(cell, "high").response.quantile_ms(0.95).unwrap();
    for lasts in ["1ms", "60s"] {
        let lasts = format!("arrivals.lasts={lasts}");
        let kept = play("levels-step.toml", &[lasts]);
        assert!(p95(&kept) <= 150.0 * 1.1, "{}", p95(&kept));
    }
    let file = text("levels-step.toml");
    let kept: Vec<&str> = file.lines().filter(|line| !line.starts_with("goal")).collect();
    let system = ["servers.threads.scheduler=system".into(), "servers.limit=10".into()];
    let system = play_text(&kept.join("\n"), &system);
    assert!(p95(&system) > 1000.0, "{}", p95(&system));
}
