//! `bywash lab fleet`: compares ways to divide the slots of one application among gateways.

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_sim::fleet::{Division, Fault, FleetCase, FleetOutput, play};
use bywash_sim::on_all_cores;
use bywash_terminal::{Align, Table};
use bywash_units::{Ratio, TimeSpan};
use serde_json::{Value, json};

use super::progress_bar;
use crate::args::FleetRun;

/// A fleet of gateways to simulate, which is a row of the table.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    gateways: u32,
    slots: u32,
    own_mixes: bool,
    moves: bool,
    /// Whether a message takes up to 400 ms instead of 5 ms, and one in twenty is lost.
    bad_network: bool,
    /// The mean service time, in milliseconds.
    service: u64,
    /// The fault that gateways have, how many seconds each has it, and the text of the table.
    faults: Option<(Fault, u64, &'static str)>,
}

/// Four gateways with 64 slots, of which each has its own mix.
const FOUR: Fleet = Fleet { own_mixes: true, ..Fleet::new(4, 64) };

/// The fleets of the table. The first number is that of the gateways, and the second that of all
/// slots. Sixteen gateways with 64 slots have four slots each.
const FLEETS: [Fleet; 17] = [
    Fleet::new(1, 64),
    Fleet::new(4, 64),
    FOUR,
    Fleet { moves: true, ..Fleet::new(4, 64) },
    Fleet { bad_network: true, ..FOUR },
    Fleet { faults: Some((Fault::CutOff, 5, "one cut off")), ..FOUR },
    Fleet { faults: Some((Fault::Stopped, 5, "one stopped")), ..FOUR },
    Fleet { faults: Some((Fault::Killed, 5, "one killed")), ..FOUR },
    Fleet { faults: Some((Fault::Killed, 10, "one killed for 10 s")), ..FOUR },
    Fleet { faults: Some((Fault::Drained, 2, "one leaves every 4 s")), ..FOUR },
    Fleet { service: 1_000, ..FOUR },
    Fleet { service: 1_000, faults: Some((Fault::Killed, 5, "one killed")), ..FOUR },
    Fleet::new(16, 64),
    Fleet { own_mixes: true, ..Fleet::new(16, 64) },
    Fleet { own_mixes: true, ..Fleet::new(16, 512) },
    Fleet { own_mixes: true, moves: true, ..Fleet::new(16, 512) },
    Fleet { own_mixes: true, ..Fleet::new(100, 1_600) },
];

impl Fleet {
    const fn new(gateways: u32, slots: u32) -> Self {
        Self {
            gateways,
            slots,
            own_mixes: false,
            moves: false,
            bad_network: false,
            service: 50,
            faults: None,
        }
    }

    fn case(self, division: Division, lasts: TimeSpan, seed: u64) -> FleetCase {
        let (delay, lost) = if self.bad_network { (400, 0.05) } else { (5, 0.0) };
        FleetCase {
            gateways: self.gateways,
            slots: self.slots,
            service: TimeSpan::from_millis(self.service),
            load: 3.0,
            skew: 10.0,
            own_mixes: self.own_mixes,
            moves: self.moves.then_some(TimeSpan::from_secs(10)),
            delay: TimeSpan::from_millis(delay),
            lost: Ratio::new(lost),
            faults: self.faults.map(|(fault, lasts, _)| (fault, TimeSpan::from_secs(lasts))),
            division,
            lasts,
            seed,
        }
    }

    fn traffic(self) -> String {
        let parts = [
            (self.own_mixes, "own mixes"),
            (self.moves, "moves every 10 s"),
            (self.bad_network, "bad network"),
            (self.service == 1_000, "services of 1 s"),
            (self.faults.is_some(), self.faults.map_or("", |(.., text)| text)),
        ];
        let parts: Vec<&str> =
            parts.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
        if parts.is_empty() { "same mix".to_owned() } else { parts.join(", ") }
    }
}

/// The results of a fleet: for each way to divide the slots, the outputs of all seeds.
struct Row {
    fleet: Fleet,
    outputs: Vec<Vec<FleetOutput>>,
}

pub(crate) fn fleet(args: &FleetRun) -> Result<(), Failure> {
    let lasts = TimeSpan::from_secs(u64::from(args.seconds));
    let own = args.gateways.zip(args.slots);
    let own = own.map(|(gateways, slots)| Fleet { own_mixes: true, ..Fleet::new(gateways, slots) });
    let fleets = own.map_or(FLEETS.to_vec(), |fleet| vec![fleet]);
    let cases: Vec<FleetCase> = fleets
        .iter()
        .flat_map(|fleet| Division::ALL.map(|division| (fleet, division)))
        .flat_map(|(fleet, division)| {
            (1..=u64::from(args.seeds)).map(move |seed| fleet.case(division, lasts, seed))
        })
        .collect();
    let (bar, progress) = progress_bar();
    let outputs = on_all_cores(&cases, &progress, play);
    bar.finish_and_clear();
    let seeds = args.seeds as usize;
    let rows: Vec<Row> = fleets
        .into_iter()
        .zip(outputs.chunks(seeds * Division::ALL.len()))
        .map(|(fleet, outputs)| {
            let outputs = outputs.chunks(seeds).map(<[_]>::to_vec).collect();
            Row { fleet, outputs }
        })
        .collect();
    if args.json {
        let rows: Vec<Value> = rows.iter().map(|row| row.json(args.seconds)).collect();
        print_json(&json!({ "seeds": args.seeds, "seconds": args.seconds, "fleets": rows }))
    } else {
        print(&table(&rows, args.seconds).to_string())
    }
}

impl Row {
    /// Returns the mean share of valuable requests that were answered, for each way to divide the
    /// slots.
    fn shares(&self) -> Vec<f64> {
        let mean = |outputs: &Vec<FleetOutput>| {
            outputs.iter().map(FleetOutput::share).sum::<f64>() / outputs.len() as f64
        };
        self.outputs.iter().map(mean).collect()
    }

    /// Returns the outputs of the last way to divide the slots, in which gateways lease slots by
    /// rank.
    fn by_rank(&self) -> &[FleetOutput] {
        self.outputs.last().map_or(&[], Vec::as_slice)
    }

    fn most(&self, of: fn(&FleetOutput) -> u32) -> u32 {
        self.by_rank().iter().map(of).max().unwrap_or(0)
    }

    /// Returns the number of requests that were answered in time with leases by rank, relative to
    /// that with one queue for all gateways.
    fn all_answered(&self) -> f64 {
        let all = |outputs: &[FleetOutput]| {
            outputs.iter().map(|output| output.answered + output.others).sum::<u64>() as f64
        };
        all(self.by_rank()) / all(&self.outputs[0])
    }

    /// Returns the number of messages per second with leases by rank. Each run begins with ten
    /// seconds that `seconds` does not include.
    fn messages(&self, seconds: u32) -> f64 {
        let sum: u64 = self.by_rank().iter().map(|output| output.messages).sum();
        sum as f64 / (self.by_rank().len() as f64 * f64::from(seconds + 10))
    }

    fn json(&self, seconds: u32) -> Value {
        let shares: serde_json::Map<String, Value> = Division::ALL
            .iter()
            .zip(self.shares())
            .map(|(division, share)| (division.name().to_owned(), json!(share)))
            .collect();
        json!({
            "gateways": self.fleet.gateways,
            "slots": self.fleet.slots,
            "traffic": self.fleet.traffic(),
            "answered": shares,
            "all_answered_of_one_queue": self.all_answered(),
            "most_slots": self.most(|output| output.most_slots),
            "most_running": self.most(|output| output.most_running),
            "messages_per_s": self.messages(seconds),
        })
    }

    fn cells(&self, seconds: u32) -> Vec<String> {
        let shares = self.shares();
        let mut cells = vec![
            self.fleet.gateways.to_string(),
            self.fleet.slots.to_string(),
            self.fleet.traffic(),
        ];
        cells.extend(shares.iter().map(|share| format!("{share:.3}")));
        cells.push(format!("{:.3}", shares[shares.len() - 1] / shares[0]));
        cells.push(format!("{:.3}", self.all_answered()));
        cells.push(self.most(|output| output.most_slots).to_string());
        cells.push(self.most(|output| output.most_running).to_string());
        cells.push(format!("{:.0}", self.messages(seconds)));
        cells
    }
}

fn table(rows: &[Row], seconds: u32) -> Table {
    let mut columns =
        vec![("gateways", Align::Right), ("of slots", Align::Right), ("traffic", Align::Left)];
    columns.extend(Division::ALL.map(|division| (division.name(), Align::Right)));
    columns.extend(
        ["of one queue", "all answered", "slots", "running", "messages"]
            .map(|column| (column, Align::Right)),
    );
    let mut table = Table::new(&columns);
    for row in rows {
        table.push(row.cells(seconds));
    }
    table
}
