//! `bywash fleet`: the gateways that share the slots of one application.

use bywash_api::{Fleet, FleetGateway};
use bywash_command::Failure;
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

use crate::args;
use crate::read::read_one;

pub(crate) fn status(args: &args::FleetStatus) -> Result<(), Failure> {
    read_one(&args.which, args.json, "/v1/fleet", |fleet: &Fleet| {
        format!("{}\n{}{}", headline(fleet), table(fleet), warnings(fleet))
    })
}

fn warnings(fleet: &Fleet) -> String {
    let line = |warning: &String| format!("warning: {}\n", escaped(warning));
    let lines: String = fleet.warnings.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn headline(fleet: &Fleet) -> String {
    let connection = match (&fleet.problem, fleet.is_connected) {
        (None, true) => "connected".to_owned(),
        (None, false) => "not connected".to_owned(),
        (Some(why), true) => format!("connected · {why}"),
        (Some(why), false) => format!("not connected: {why}"),
    };
    let leads = match &fleet.allocator {
        Some(name) => format!("{name} divides the slots"),
        None => "this gateway uses its own share of the slots".to_owned(),
    };
    let rejected: u64 = fleet.rejected.values().sum();
    let reasons: Vec<String> =
        fleet.rejected.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let reasons = if rejected > 0 { format!(" ({})", reasons.join(", ")) } else { String::new() };
    let rate = fleet.messages_per_s.map_or(String::new(), |rate| format!(", {rate:.0} a second"));
    format!(
        "{}: {} of {} slots, share {} · {leads}\nNATS: {connection} · messages sent {}, received \
         {}{rate}, ignored {rejected}{reasons}\n",
        fleet.name, fleet.slots, fleet.limit, fleet.share, fleet.sent, fleet.received
    )
}

fn table(fleet: &Fleet) -> Table {
    let mut table = Table::new(&[
        ("gateway", Align::Left),
        ("state", Align::Left),
        ("slots", Align::Right),
        ("running", Align::Right),
        ("waiting", Align::Right),
        ("demand", Align::Right),
        ("limit", Align::Right),
        ("version", Align::Left),
    ]);
    let number = |number: Option<u32>| number.map_or("—".to_owned(), |number| number.to_string());
    for gateway in &fleet.gateways {
        table.push(vec![
            gateway.name.clone(),
            state(gateway, fleet),
            number(gateway.slots),
            number(gateway.running),
            number(gateway.waiting),
            gateway.demand.map_or("—".to_owned(), |demand| format!("{demand:.1}")),
            number(gateway.limit),
            gateway.version.clone().unwrap_or_else(|| "—".to_owned()),
        ]);
    }
    table
}

fn state(gateway: &FleetGateway, fleet: &Fleet) -> String {
    match gateway.heard_ms {
        None if gateway.is_down => "has ended".to_owned(),
        None => "not heard".to_owned(),
        Some(ms) if !gateway.is_current => format!("silent for {} s", ms / 1_000),
        Some(_) if gateway.limit != Some(fleet.limit) => "another limit".to_owned(),
        Some(_) => "current".to_owned(),
    }
}
