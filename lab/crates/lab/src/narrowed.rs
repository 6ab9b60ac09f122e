//! Restricts a scenario to the policies, loads and seeds that the arguments ask for.

use bywash_command::Failure;
use bywash_scenario::Scenario;
use bywash_scenario::file::Length;

use crate::args::Narrow;

pub(super) fn narrowed(mut scenario: Scenario, args: &Narrow) -> Result<Scenario, Failure> {
    if !args.rho.is_empty() {
        scenario.rho.clone_from(&args.rho);
    }
    scenario.seeds = args.seeds.unwrap_or(scenario.seeds);
    scenario.first_seed = args.first_seed.unwrap_or(scenario.first_seed);
    if let Some(orders) = args.orders {
        if scenario.graph.orders_per_session().is_none_or(|orders| orders <= 0.0) {
            return Err(Failure::usage("--orders: no session of this scenario makes an order"));
        }
        scenario.length = Length::Orders(orders);
    }
    if !args.policy.is_empty() {
        let labels: Vec<&str> =
            scenario.policies.iter().map(|policy| policy.label.as_str()).collect();
        if let Some(wrong) = args.policy.iter().find(|label| !labels.contains(&label.as_str())) {
            let labels = labels.join(", ");
            return Err(Failure::usage(format!(
                "--policy {wrong}: the scenario has no such policy; it has {labels}"
            )));
        }
        scenario.policies.retain(|policy| args.policy.contains(&policy.label));
    }
    Ok(scenario)
}
