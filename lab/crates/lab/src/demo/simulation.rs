//! Part one of the demo: simulates the policies of paper 1 and bywash's own policy with the same
//! shop, in virtual time.
//!
//! The run is short and takes less than a second. The full run is `bywash lab sim
//! papers/1-lifo-pri/scenarios/paper-1.toml`.

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_scenario::file::Length;
use bywash_scenario::{Closes, RunResult, Scenario};
use bywash_terminal::{Align, Table};

/// The offered loads, as multiples of the shop's capacity.
const LEVELS: [f64; 2] = [1.4, 5.0];

pub(super) fn simulate(mut scenario: Scenario) -> Result<(), Failure> {
    scenario.rho = LEVELS.into();
    scenario.closes = vec![Closes::Hidden];
    scenario.seeds = 4;
    scenario.length = Length::Orders(200);
    for policy in &mut scenario.policies {
        policy.label = words(&policy.name).to_owned();
    }
    let (result, _) = bywash_sim::run(&scenario, &|_, _| ()).map_err(Failure::running)?;
    say(format!(
        "1. Simulated: the shop of a paper of 2004. More visitors come than it can serve, and\n   \
            it cannot see which clients have left. What it sells, as a share of what its\n   \
            capacity allows, depends on the order of service (± is the standard error):\n\n{}",
        table(&scenario, &result)
    ));
    Ok(())
}

/// Returns a short description of `policy` for readers who do not know it.
fn words(policy: &str) -> &str {
    match policy {
        "single-queue" => "one queue, oldest first: most servers",
        "always-fifo" => "a queue per page, oldest first",
        "lifo-pri" => "buyers first, newest first: the paper",
        "session-first" => "sessions in progress first: bywash",
        other => other,
    }
}

fn table(scenario: &Scenario, result: &RunResult) -> Table {
    let heads = LEVELS.map(|rho| format!("orders at {rho} × load"));
    let mut table = Table::new(&[
        ("order of service", Align::Left),
        (&heads[0], Align::Right),
        (&heads[1], Align::Right),
    ]);
    for policy in &scenario.policies {
        let own = result.cells.iter().filter(|cell| cell.policy == policy.label);
        let share = own.map(|cell| {
            let error = 100.0 * cell.revenue_error.unwrap_or(0.0);
            format!("{:.0} ± {error:.0} %", 100.0 * cell.revenue_share)
        });
        table.push(std::iter::once(policy.label.clone()).chain(share).collect());
    }
    table
}
